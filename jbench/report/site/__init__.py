"""The leaderboard as pages that open from disk."""

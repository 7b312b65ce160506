"""A plan as text for engines that start jobs themselves: Slurm, Kubernetes, SkyPilot. No daemon, nothing is started."""

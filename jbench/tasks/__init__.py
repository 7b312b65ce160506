"""What is asked of recordings: one module per category holds `TASKS`, a tuple of `jbench.spec.task.Task`.

The file name is the registry. To add a task, add a `Task` to the module of its category, or a new module.
"""

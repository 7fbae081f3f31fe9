"""Reachy Remembers as an app of the robot's dashboard: starts the program that does everything, shows how it is."""

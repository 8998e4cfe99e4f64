"""A command that is watched: started as it would be without us, and told about at its end."""

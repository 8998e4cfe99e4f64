"""What makes things for the repository: documents, pictures."""

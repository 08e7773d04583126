"""Jobs on a cluster whose nodes do not see the workspace: what they need and what they make goes through an object
store, which this machine and every node can reach.

``bucket.py``   the store itself: put, get, list, delete, and in one sentence what is wrong with it
``pieces.py``   files as pieces named by their content, so that nothing that is there is sent again
``needs.py``    what of the workspace a job needs
``here.py``     the submitter's side: sends what is needed, takes what the node makes into the workspace
``there.py``    the node's side: a workspace of its own in a scratch folder, and what changes in it

The two sides carry the files of ``cdp.jobs.lease`` to and fro, so that supervisor and node talk as over a shared file
system and neither need know that there is none.
"""

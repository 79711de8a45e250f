package hub

import "errors"

// ErrAway is the error of a request that was not sent, or got no response,
// because the hub cannot be reached. Retrying does not help before the hub is
// back.
var ErrAway = errors.New("the hub is out of reach")

// ErrHeld means that the hub can be reached, but that none of its objects may be
// accepted: it was restored from an older backup, or may have been.
var ErrHeld = errors.New("nothing is taken over from the hub")

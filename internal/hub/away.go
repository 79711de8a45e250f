package hub

import "errors"

// ErrAway says that a request was not sent, or had no answer, because the hub is
// out of reach. It is no use to retry before the hub is back.
var ErrAway = errors.New("the hub is out of reach")

// ErrHeld says that the hub is there, but that none of its objects may be accepted: it
// was restored from an older backup, or it cannot be known whether it was.
var ErrHeld = errors.New("nothing is taken over from the hub")

package hub

import "errors"

// ErrAway says that a request was not sent, or had no answer, because the hub is
// out of reach. Who asked need not ask again before the hub is back.
var ErrAway = errors.New("the hub is out of reach")

// ErrHeld says that the hub is there, and that nothing is to be taken over from it: it
// was set back to an older backup, or that cannot be known.
var ErrHeld = errors.New("nothing is taken over from the hub")

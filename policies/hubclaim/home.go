package hubclaim

import (
	"slices"
	"time"
)

// The folder of a hub may be copied, and the copy be run beside it: members know both by
// one identity. So a hub acts from one home, which its members carry. A hub that comes from
// another place asks first, in the member, and acts once nobody has refused for a while: a
// running hub checks its members more often than that.

// Home is the place from which a hub acts in a member, and the other place that asks to. The zero value
// is that of a member in which only hubs without a known place have acted.
type Home struct {
	// At is the place from which the hub acts.
	At string `json:"at"`
	// Asks is another place that asks to act; empty: none does.
	Asks string `json:"asks,omitempty"`
	// Refused are places that asked, and were refused because the hub still acts from At,
	// the latest last.
	Refused []string `json:"refused,omitempty"`
}

const (
	// UntilMoved is how long a request must go unanswered until the asking place acts. Members are checked every 10 s.
	UntilMoved = 30 * time.Second
	// untilOthers is how long a place waits for another one that asks, too.
	untilOthers = 2 * UntilMoved
	// mostRefused is how many refused places are kept.
	mostRefused = 8
	// untilAgain is how long a refused place waits before it asks again.
	untilAgain = 5 * time.Minute
)

// Turn is whether a place may act in a member now.
type Turn int

const (
	// Acts: it may.
	Acts Turn = iota
	// Asks: not yet; it has asked, and nobody has answered.
	Asks
	// Refused: it may not, the hub acts from another place.
	Refused
)

// Observation is what an observer knows of a Home.
type Observation struct {
	// Still is for how long it has not changed, by the observer's clock.
	Still time.Duration
	// Asked says that the observer has asked already, since its start.
	Asked bool
}

// Enter returns whether the hub at a place may act, and the home as it is to be then; nil
// is none. An empty place is not known: it may act, and leaves the home as it is.
func (h *Home) Enter(place string, seen Observation) (next *Home, turn Turn) {
	switch {
	case place == "":
		return h, Acts
	case h == nil || h.At == "":
		return &Home{At: place}, Acts
	case h.At == place && h.Asks != "":
		return &Home{At: place, Refused: refused(h.Refused, h.Asks)}, Acts
	case h.At == place:
		return h, Acts
	case h.Asks == place && seen.Still >= UntilMoved:
		return &Home{At: place}, Acts
	case h.Asks == place:
		return h, Asks
	case slices.Contains(h.Refused, place) && seen.Asked && seen.Still < untilAgain:
		return h, Refused
	case h.Asks != "" && seen.Still < untilOthers:
		return h, Asks
	default:
		return &Home{At: h.At, Asks: place, Refused: h.Refused}, Asks
	}
}

// refused returns the places with one more at the end.
func refused(places []string, place string) []string {
	out := slices.DeleteFunc(slices.Clone(places), func(other string) bool { return other == place })
	out = append(out, place)
	return out[max(0, len(out)-mostRefused):]
}

// Elsewhere reports whether the hub acts from another place than this one; nil is from none.
func (h *Home) Elsewhere(place string) bool {
	return h != nil && h.At != "" && place != "" && h.At != place
}

// Same reports whether two homes are the same; nil is none.
func (h *Home) Same(other *Home) bool {
	if h == nil || other == nil {
		return h == other
	}
	return h.At == other.At && h.Asks == other.Asks && slices.Equal(h.Refused, other.Refused)
}

package hubclaim

import (
	"slices"
	"time"
)

// The folder of a hub may be copied, and the copy be run beside it: members know both by
// one identity. So a hub acts from one home, which its members carry. Who comes from
// elsewhere asks first, in the member, and acts once nobody has refused for a while: a
// hub that runs looks at its members more often than that.

// Home is from where a hub acts in a member, and who would from elsewhere. The zero value
// is that of a member in which no hub has acted that knows where it is.
type Home struct {
	// At is where the hub acts from.
	At string `json:"at"`
	// Asks is another place, from where somebody would act; empty: nobody.
	Asks string `json:"asks,omitempty"`
	// Refused are places from where somebody asked, and was told that the hub still acts,
	// the latest last.
	Refused []string `json:"refused,omitempty"`
}

const (
	// UntilMoved is how long nobody may answer who asks. Members are looked at every 10 s.
	UntilMoved = 30 * time.Second
	// untilOthers is how long somebody else who asks is waited for.
	untilOthers = 2 * UntilMoved
	// mostRefused is how many are remembered.
	mostRefused = 8
	// untilAgain is how long who was refused waits before asking again.
	untilAgain = 5 * time.Minute
)

// Turn is whether somebody may act in a member now.
type Turn int

const (
	// Acts: yes.
	Acts Turn = iota
	// Asks: not yet, nobody has answered.
	Asks
	// Refused: no, the hub acts from elsewhere.
	Refused
)

// Glance is how somebody knows a home.
type Glance struct {
	// Still is for how long it has been as it is, by the clock of who looks.
	Still time.Duration
	// Asked says that who looks has asked already, since the start of the program.
	Asked bool
}

// Enter returns whether the hub at a place may act, and the home as it is to be then; nil
// is none. A place that is empty is one that is not known: it is kept apart from none.
func (h *Home) Enter(place string, seen Glance) (next *Home, turn Turn) {
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

// refused returns the places with one more, the last.
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

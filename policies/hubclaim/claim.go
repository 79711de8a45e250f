// Package hubclaim decides which hub owns a member cluster, and which hub owns the
// objects in it.
//
// In go the claim that a member carries, the hub that asks, and the owner that an
// object records; out come verdicts, and the claim to be written. A name is never
// evidence: two hubs may use the same ones. The package does no I/O.
package hubclaim

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ErrMalformed says that the annotation of a claim does not hold one.
var ErrMalformed = errors.New("the claim in the cluster cannot be read")

// Claim is what a member records of its hub.
type Claim struct {
	// Hub is the identity of the hub: the UID of its kube-system namespace.
	Hub string `json:"hub"`
	// Cluster is the member's name at that hub.
	Cluster string `json:"cluster"`
	// Address is the hub's URL, for people; empty if it was not known.
	Address string `json:"address,omitempty"`
	// Mode is who applies there: Push, Pull, or empty where that is not known.
	Mode string `json:"mode,omitempty"`
	// Former are the hubs that lost the member to another one, the latest last.
	Former []string `json:"former,omitempty"`
	// Names are those that the member had at its hub before, the latest last.
	Names []string `json:"names,omitempty"`
	// Mark is the highest revision of the hub's store that the member has seen; nil: none.
	Mark *Mark `json:"mark,omitempty"`
	// Home is the place from which the hub acts; nil does not restrict it.
	Home *Home `json:"home,omitempty"`
}

// The modes of a claim.
const (
	// Push: the hub applies there itself.
	Push = "Push"
	// Pull: an agent in the cluster does.
	Pull = "Pull"
)

// mostFormer is how many former hubs, and former names, are remembered.
const mostFormer = 8

// longestRun is the longest identity of a run, in bytes: what a member writes
// there is kept on the hub.
const longestRun = 64

// Parse reads a claim; nil if text is empty. Errors: ErrMalformed.
func Parse(text string) (*Claim, error) {
	if text == "" {
		return nil, nil
	}
	c := &Claim{}
	if err := json.Unmarshal([]byte(text), c); err != nil || c.Hub == "" || c.Mark != nil && len(c.Mark.ID) > longestRun {
		return nil, ErrMalformed
	}
	return c, nil
}

// Encode returns the claim as Parse reads it.
func (c *Claim) Encode() string {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return string(data)
}

// Describe names the hub, for people.
func (c *Claim) Describe() string {
	if c.Address == "" {
		return fmt.Sprintf("cluster %s of the control plane with the identity %s", c.Cluster, c.Hub)
	}
	return fmt.Sprintf("cluster %s of the control plane at %s, which has the identity %s", c.Cluster, c.Address, c.Hub)
}

// Claimant is a hub that claims a member. The zero value is a hub that does not know
// its own identity, and claims nothing.
type Claimant struct {
	// Hub is its identity, Cluster the member's name at that hub.
	Hub, Cluster string
	// Address is its URL, for people; empty if that is not known.
	Address string
	// Mode is the member's mode at that hub; empty leaves it as it is.
	Mode string
	// Place is the place from which it asks; empty if that is not known.
	Place string
	// Alone says that the claimant is an agent without a connection to its hub: what
	// it knows of the hub may be outdated.
	Alone bool
}

// Pushed reports whether an agent claims a member to which its hub applies itself: the member was
// in pull mode once, and its agent does not know yet.
func (c *Claim) Pushed(h Claimant) bool {
	return c != nil && c.Hub == h.Hub && c.Mode == Push && h.Mode == Pull
}

// Verdict is which hub a member belongs to.
type Verdict int

const (
	// Free: it belongs to no hub.
	Free Verdict = iota
	// Ours: it belongs to the claimant.
	Ours
	// Anothers: it belongs to another hub.
	Anothers
)

// Judge decides which hub a member with this claim belongs to; nil is no claim.
func Judge(c *Claim, h Claimant) Verdict {
	switch {
	case c == nil:
		return Free
	case c.Hub == h.Hub:
		return Ours
	default:
		return Anothers
	}
}

// Take returns the claim with which h has the member, and whether it differs
// from c. It takes over a claim of another hub: whether it may is not decided
// here.
func Take(c *Claim, h Claimant) (*Claim, bool) {
	if c == nil {
		return &Claim{Hub: h.Hub, Cluster: h.Cluster, Address: h.Address, Mode: h.Mode}, true
	}
	out := *c
	switch {
	case c.Hub != h.Hub:
		out = Claim{Hub: h.Hub, Address: h.Address, Former: remember(c.Former, h.Hub, c.Hub)}
	case c.Cluster != h.Cluster && c.Cluster != "":
		out.Names = remember(c.Names, h.Cluster, c.Cluster)
	}
	out.Cluster = h.Cluster
	if out.Address == "" {
		out.Address = h.Address
	}
	if h.Mode != "" {
		out.Mode = h.Mode
	}
	return &out, out.Hub != c.Hub || out.Mode != c.Mode || out.Cluster != c.Cluster || out.Address != c.Address
}

// remember returns former names with the last one added, and without the present one.
func remember(known []string, now, last string) []string {
	out := slices.DeleteFunc(slices.Clone(known), func(one string) bool { return one == now || one == last })
	out = append(out, last)
	return out[max(0, len(out)-mostFormer):]
}

// Standing is what a hub may conclude about objects in a member that it has. The zero value is
// that of a hub that does not know its own identity: names decide, as they did before
// there were claims.
type Standing struct {
	// Hub is its identity.
	Hub string
	// Contested says that another hub had the member before: an object that does not
	// name its hub may be that one's.
	Contested bool
	// Renamed says that the hub had the member under another name before.
	Renamed bool
}

// StandingOf returns the Standing of h in a member that carries h's claim.
func StandingOf(c *Claim, h Claimant) Standing {
	return Standing{Hub: h.Hub, Contested: c != nil && len(c.Former) > 0, Renamed: c != nil && c.Hub == h.Hub && len(c.Names) > 0}
}

// Ownership is what an object in a member records of its owner. Users of the member may write what they
// like there: it only ever counts as a reason to leave an object alone.
type Ownership struct {
	// Hub is the identity of the hub that applied it; empty for objects that were
	// applied before hubs recorded it.
	Hub string
	// Work is the permanent ID of its Work; empty for none.
	Work string
}

// Foreign reports whether an object that a Work asks for belongs to another hub: it is only
// taken over where a policy allows it.
func (s Standing) Foreign(m Ownership, work string) bool {
	switch {
	case s.Hub == "":
		return false
	case m.Hub != "":
		return m.Hub != s.Hub
	case m.Work != "" && m.Work == work:
		return false
	default:
		return s.Contested
	}
}

// MayRemove reports whether a Work may remove an object, by more evidence than its name:
// this hub has applied it, or it has the Work's permanent ID. An object without either
// was applied by an old version, by the hub that had the member then.
func (s Standing) MayRemove(m Ownership, work string) bool {
	switch {
	case s.Hub == "":
		return true
	case m.Hub != "":
		return m.Hub == s.Hub
	case m.Work != "" && work != "":
		return m.Work == work
	default:
		return !s.Contested
	}
}

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

// ErrMalformed says that what stands where a claim should be is none.
var ErrMalformed = errors.New("the claim in the cluster cannot be read")

// Claim is what a member carries of its hub.
type Claim struct {
	// Hub is the identity of the hub: the UID of its kube-system namespace.
	Hub string `json:"hub"`
	// Cluster is the member's name there.
	Cluster string `json:"cluster"`
	// Address is where people find that hub; empty if nobody knew.
	Address string `json:"address,omitempty"`
	// Mode says who applies there: Push, Pull, or empty where that is not known.
	Mode string `json:"mode,omitempty"`
	// Former are the hubs that lost the member to another one, the latest last.
	Former []string `json:"former,omitempty"`
	// Names are those that the member had at its hub before, the latest last.
	Names []string `json:"names,omitempty"`
	// Mark is how far the member has seen the hub's store go; nil: not at all.
	Mark *Mark `json:"mark,omitempty"`
	// Home is from where the hub acts there; nil: from wherever it is.
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

// longestRun is how many bytes the identity of a run has at most: what a member writes
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

// Describe names the holder for people.
func (c *Claim) Describe() string {
	if c.Address == "" {
		return fmt.Sprintf("cluster %s of the control plane with the identity %s", c.Cluster, c.Hub)
	}
	return fmt.Sprintf("cluster %s of the control plane at %s, which has the identity %s", c.Cluster, c.Address, c.Hub)
}

// Claimant is a hub that claims a member. The zero value is one that does not know
// who it is, and claims nothing.
type Claimant struct {
	// Hub is its identity, Cluster the member's name there.
	Hub, Cluster string
	// Address is where people find it; empty if that is not known.
	Address string
	// Mode is how the member is to be had; empty leaves that open.
	Mode string
	// Place is where it is that asks; empty if that is not known.
	Place string
	// Alone says that it is an agent that asks which is not in touch with its hub: what
	// it goes by may have been so once.
	Alone bool
}

// Pushed reports whether an agent asks for a member where its hub applies itself: it was
// in pull mode once, and its agent does not know yet.
func (c *Claim) Pushed(h Claimant) bool {
	return c != nil && c.Hub == h.Hub && c.Mode == Push && h.Mode == Pull
}

// Verdict is whose a member is.
type Verdict int

const (
	// Free: nobody's.
	Free Verdict = iota
	// Ours: of the hub that asks.
	Ours
	// Anothers: of another hub.
	Anothers
)

// Judge says whose a member with this claim is; nil is no claim.
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

// Take returns the claim as it is once h has the member, and whether that is
// another one than c. A claim of another hub is taken over: that is not asked
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

// remember returns what was known with the last one added, and without what is now.
func remember(known []string, now, last string) []string {
	out := slices.DeleteFunc(slices.Clone(known), func(one string) bool { return one == now || one == last })
	out = append(out, last)
	return out[max(0, len(out)-mostFormer):]
}

// Standing is what a hub may conclude of a member that it has. The zero value is
// that of a hub that does not know who it is: names decide, as they did before
// there were claims.
type Standing struct {
	// Hub is its identity.
	Hub string
	// Contested says that another hub had the member before: what does not say
	// whose it is may be that one's.
	Contested bool
	// Renamed says that the hub had the member under another name before.
	Renamed bool
}

// StandingOf returns what h may conclude of a member with its own claim.
func StandingOf(c *Claim, h Claimant) Standing {
	return Standing{Hub: h.Hub, Contested: c != nil && len(c.Former) > 0, Renamed: c != nil && c.Hub == h.Hub && len(c.Names) > 0}
}

// Ownership is what an object in a member says of its owner. Members may write there what they
// like: it is only ever a reason to leave an object alone.
type Ownership struct {
	// Hub is the identity of the hub that applied it; empty for objects that were
	// applied before hubs recorded it.
	Hub string
	// Work is the permanent id of its Work; empty for none.
	Work string
}

// Foreign reports whether an object that a Work asks for is another hub's: it is only
// taken where a policy says so.
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

// MayRemove reports whether an object is the Work's to remove, beyond what names say:
// this hub has applied it, or it has the Work's permanent id. One that says neither
// was applied long ago, by whoever had the member then.
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

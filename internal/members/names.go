package members

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/internal/members/informer"
	"github.com/flotilla-io/flotilla/internal/members/transport"
)

// A Member returns the types and errors of the packages below. They are
// names of this one, so that who talks to members imports nothing else.
type (
	// Observed is what is kept of an object in a member.
	Observed = informer.Observed
	// Presence is what is known about whether an object exists.
	Presence = informer.Presence
	// Interpreter reads status and health from a member's object.
	Interpreter = informer.Interpreter
)

// The answers of Member.Read.
const (
	Unknown  = informer.Unknown
	Absent   = informer.Absent
	Present  = informer.Present
	Unserved = informer.Unserved
)

var (
	// ErrBusy says that a member leaves too many requests of this kind unanswered
	// to be asked another one now. Requests of other kinds may go through.
	ErrBusy = transport.ErrBusy
	// ErrRedirect says that a member's answer was a redirect: credentials are not
	// carried to where a member points.
	ErrRedirect = transport.ErrRedirect
)

// MetadataOf returns what an object says about itself and who it belongs to, without
// its fields, status and health.
func MetadataOf(obj *unstructured.Unstructured) *Observed { return informer.MetadataOf(obj) }

package siblings

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// ReasonHandingOver says that a revision is applied, and that other Kustomizations of its source have yet to take over
// what left it. Those that depend on this one go on, as they may be the ones that take it over.
const ReasonHandingOver = "HandingOver"

// ReasonSharedObject says that another Kustomization of the source holds the same object.
const ReasonSharedObject = "SharedObject"

// Handover is what leaves a Kustomization, by what happens to it. The zero value is nothing.
type Handover struct {
	// Deleted are the objects that nobody wants.
	Deleted []inventory.Entry
	// Passing are the objects that a sibling wants and has yet to take over; Successors says which sibling.
	Passing    []inventory.Entry
	Successors map[inventory.ID]client.ObjectKey
	// Undecided are objects that the siblings in Unknown may want: what these want is not known, as they cannot be
	// built.
	Undecided []inventory.Entry
	Unknown   []client.ObjectKey
	// Allow is the value of inventory.AllowPruneAnnotation that allows Undecided to be deleted, and Trailer the line
	// of a commit message that does; empty where none would.
	Allow, Trailer string
	// Within is the only namespace whose Kustomizations may be named; empty for all.
	Within string
}

// Of splits what would be deleted at a revision, given who wants what and which deletions people have allowed.
func Of(doomed []inventory.Entry, answer Answer, may inventory.Allowance, revision string) Handover {
	out := Handover{Successors: answer.Successors, Unknown: answer.Unknown}
	for _, e := range doomed {
		_, inherited := answer.Successors[e.ID]
		switch {
		case answer.Taken[e.ID]:
		case inherited:
			out.Passing = append(out.Passing, e)
		case len(answer.Unknown) > 0 && !may.Lets(e.ID):
			out.Undecided = append(out.Undecided, e)
		default:
			out.Deleted = append(out.Deleted, e)
		}
	}
	out.Allow, out.Trailer = allow(out.Undecided, may, revision)
	return out
}

// allow returns the annotation's value and the trailer that allow these to be deleted. In the annotation a single
// object, and those that the brake accepts only by name, are named, and others are allowed by the revision. The trailer
// names them all.
func allow(undecided []inventory.Entry, may inventory.Allowance, revision string) (words, trailer string) {
	var own, names []string
	for _, e := range undecided {
		word := revision
		names = append(names, may.NameOf(e.ID))
		if len(undecided) == 1 || inventory.PreciousKind(e.ID.GroupKind) != "" {
			word = may.NameOf(e.ID)
		}
		own = append(own, word)
	}
	slices.Sort(own)
	return strings.Join(slices.Compact(own), ", "), may.Trailer(names)
}

// Staying returns the objects that the Kustomization still owns.
func (h Handover) Staying() []inventory.Entry { return inventory.Union(h.Passing, h.Undecided) }

// Waits reports whether anything stays until siblings have taken it over or can be built.
func (h Handover) Waits() bool { return len(h.Passing)+len(h.Undecided) > 0 }

// mostNamed is how many objects a text names.
const mostNamed = 3

// String returns a text about what the Kustomization waits for; empty for nothing.
func (h Handover) String() string {
	var parts []string
	if len(h.Passing) > 0 {
		var successors []client.ObjectKey
		for _, e := range h.Passing {
			if successor := h.Successors[e.ID]; !slices.Contains(successors, successor) {
				successors = append(successors, successor)
			}
		}
		names, several := h.names(successors)
		parts = append(parts, fmt.Sprintf("%s %s: %s %s yet to apply %s", first(h.Passing), either(len(h.Passing), "changes hands", "change hands"),
			names, either(several, "has", "have"), either(len(h.Passing), "it", "them")))
	}
	if len(h.Undecided) > 0 {
		names, several := h.names(h.Unknown)
		parts = append(parts, fmt.Sprintf("%s left this one and %s: nobody can tell whether %s %s %s, as %s cannot be built; mend that, or allow the removal with %s",
			first(h.Undecided), either(len(h.Undecided), "stays", "stay"), names, either(several, "wants", "want"), either(len(h.Undecided), "it", "them"), either(several, "that", "they"), inventory.HowToAllow(h.Allow, h.Trailer)))
	}
	return strings.Join(parts, "; ")
}

func first(entries []inventory.Entry) string {
	return inventory.First(inventory.IDsOf(entries), mostNamed)
}

// either returns the wording for a count of one, or for another count.
func either(count int, one, more string) string {
	if count == 1 {
		return one
	}
	return more
}

// names returns a text that names Kustomizations, and how many names it has.
func (h Handover) names(keys []client.ObjectKey) (string, int) {
	var out []string
	for _, key := range keys {
		out = append(out, Name(key, h.Within))
	}
	out = slices.Compact(out)
	return either(len(out), "Kustomization ", "Kustomizations ") + strings.Join(out, ", "), len(out)
}

// Name returns the name of a Kustomization for people who may learn only of those in the namespace within; empty for
// all.
func Name(key client.ObjectKey, within string) string {
	if within != "" && key.Namespace != within {
		return "of another namespace"
	}
	return key.String()
}

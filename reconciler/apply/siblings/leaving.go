package siblings

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// ReasonHandingOver says that a revision stands, and that what left it waits for other Kustomizations of
// its source. Those that depend on this one go on.
const ReasonHandingOver = "HandingOver"

// Leaving is what leaves a Kustomization. The zero value is nothing.
type Leaving struct {
	// Deleted are the objects that nobody wants.
	Deleted []inventory.Entry
	// Passing are those that a sibling wants, and has yet to take; Successors says which.
	Passing    []inventory.Entry
	Successors map[inventory.ID]client.ObjectKey
	// Undecided may be wanted by the siblings in Unknown, of which that is not known.
	Undecided []inventory.Entry
	Unknown   []client.ObjectKey
	// Allow is the value of inventory.AllowPruneAnnotation that lets what is held go, and Trailer the line of a commit
	// that does; empty where none would.
	Allow, Trailer string
	// Within is the only namespace whose Kustomizations may be named; empty for all.
	Within string
}

// Of splits what would be deleted at a revision, given who wants what and what people let go.
func Of(doomed []inventory.Entry, answer Answer, may inventory.Allowance, revision string) Leaving {
	out := Leaving{Successors: answer.Successors, Unknown: answer.Unknown}
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

// allow is what lets these go: the one that is alone, and what the brake takes by its name only, by name, and others by
// the revision; and the trailer, which names them all.
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

// Staying are the objects that are owned on.
func (l Leaving) Staying() []inventory.Entry { return inventory.Union(l.Passing, l.Undecided) }

// Waits reports whether anything stays until siblings have done their part.
func (l Leaving) Waits() bool { return len(l.Passing)+len(l.Undecided) > 0 }

// mostNamed is how many objects a text names.
const mostNamed = 3

// String says what is waited for; empty for nothing.
func (l Leaving) String() string {
	var parts []string
	if len(l.Passing) > 0 {
		var successors []client.ObjectKey
		for _, e := range l.Passing {
			if successor := l.Successors[e.ID]; !slices.Contains(successors, successor) {
				successors = append(successors, successor)
			}
		}
		names, several := l.names(successors)
		parts = append(parts, fmt.Sprintf("%s %s: %s %s yet to apply %s", first(l.Passing), either(len(l.Passing), "changes hands", "change hands"),
			names, either(several, "has", "have"), either(len(l.Passing), "it", "them")))
	}
	if len(l.Undecided) > 0 {
		names, several := l.names(l.Unknown)
		parts = append(parts, fmt.Sprintf("%s left this one and %s: nobody can tell whether %s %s %s, as that cannot be built; mend that, or allow the removal with %s",
			first(l.Undecided), either(len(l.Undecided), "stays", "stay"), names, either(several, "wants", "want"), either(len(l.Undecided), "it", "them"), inventory.HowToAllow(l.Allow, l.Trailer)))
	}
	return strings.Join(parts, "; ")
}

func first(entries []inventory.Entry) string {
	return inventory.First(inventory.IDsOf(entries), mostNamed)
}

// either is one of two wordings, by a count.
func either(count int, one, more string) string {
	if count == 1 {
		return one
	}
	return more
}

// names names Kustomizations, and counts the names.
func (l Leaving) names(keys []client.ObjectKey) (string, int) {
	var out []string
	for _, key := range keys {
		out = append(out, Name(key, l.Within))
	}
	out = slices.Compact(out)
	return either(len(out), "Kustomization ", "Kustomizations ") + strings.Join(out, ", "), len(out)
}

// Name names a Kustomization to people who may know only of those of a namespace, or of all where it
// is empty.
func Name(key client.ObjectKey, within string) string {
	if within != "" && key.Namespace != within {
		return "of another namespace"
	}
	return key.String()
}

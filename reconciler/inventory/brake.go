package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/propagation"
)

// Brake says how much of an inventory one revision may remove. What goes along counts, too.
type Brake struct {
	// Share is the part of the inventory that may go, from 0 to 1. More is
	// refused if it is also more than Count.
	Share float64
	// Count is the number of objects that may always go, unless they are all
	// there is.
	Count int
}

// DefaultBrake refuses a revision that removes more than a fifth of the
// inventory and more than five objects, or everything, or the last workload.
func DefaultBrake() Brake { return Brake{Share: 0.2, Count: 5} }

// Loss is an object that a revision removes, with what goes along.
type Loss struct {
	ID ID
	// Within is how many other objects go with it that the revision does not remove itself: what
	// is in a namespace, the objects of a kind, the inventory of a Kustomization.
	Within int
	// Precious says that it goes only if somebody names it: it is used by others, or holds data.
	Precious bool
	// Last says that no workload is left without it.
	Last bool
	// Runs says that workloads are among what goes with it.
	Runs bool
}

// String is "Namespace/shop with 82 objects".
func (l Loss) String() string {
	switch {
	case l.Last:
		return Describe(l.ID) + ", the last workload"
	case l.Within == 0:
		return Describe(l.ID)
	case l.Runs && l.Within == 1:
		return Describe(l.ID) + " with 1 object, a workload"
	case l.Runs:
		return fmt.Sprintf("%s with %d objects, workloads among them", Describe(l.ID), l.Within)
	case l.Within == 1:
		return Describe(l.ID) + " with 1 object"
	default:
		return fmt.Sprintf("%s with %d objects", Describe(l.ID), l.Within)
	}
}

// Refusal is the brake's answer: why nothing was removed.
type Refusal struct {
	// Total is how many objects are owned.
	Total int
	// Losses are those that nobody allowed, the worst first.
	Losses []Loss
	// Revision is the one that was refused.
	Revision string
	// Allow is the value of AllowPruneAnnotation that would let them go.
	Allow string
	// Misspelt are words that let nothing go, each with the name that it may mean: "namespace/shpo (did you mean
	// namespace/shop?)". Sorted.
	Misspelt []string
}

func (e *Refusal) Error() string {
	var names []string
	for _, l := range e.Losses[:min(namedInRefusal, len(e.Losses))] {
		names = append(names, l.String())
	}
	text, them := strings.Join(names, ", "), "them"
	if len(e.Losses) == 1 {
		them = "it"
	}
	if more := len(e.Losses) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	out := fmt.Sprintf("revision %s would remove %d of %d objects (%s): nothing was applied; commit %s again, or allow it with the annotation %s: %q",
		e.Revision, len(e.Losses), e.Total, text, them, AllowPruneAnnotation, e.Allow)
	if len(e.Misspelt) > 0 {
		out += "; allowed is " + strings.Join(e.Misspelt, ", ")
	}
	return out
}

// AllowPruneAnnotation on a Kustomization lifts the brake. Its words, between commas, are
// revisions for which it is lifted, "true" for all of them, and objects that may go whenever they
// do, such as "namespace/shop". What is precious goes by its name alone.
const AllowPruneAnnotation = "kustomize.flotilla.io/allow-prune"

const (
	namedInRefusal = 3
	// shortest abbreviation of a commit that names a revision.
	shortestCommit = 7
)

// Check returns a *Refusal if removing these objects from an inventory of
// total objects needs to be allowed by a person. Each must be one that would truly be deleted,
// and stand once.
func (b Brake) Check(total int, losses []Loss, may Allowance, revision string) error {
	var unnamed, precious []Loss
	gone := 0
	for _, l := range losses {
		if may.Names(l.ID) {
			continue
		}
		if unnamed, gone = append(unnamed, l), gone+1+l.Within; l.Precious {
			precious = append(precious, l)
		}
	}
	everything := len(unnamed) > 0 && len(unnamed) >= total
	last := slices.ContainsFunc(unnamed, func(l Loss) bool { return l.Last || l.Runs })
	tooMany := everything || last || gone > b.Count && float64(gone) > b.Share*float64(total)
	refused := unnamed
	if may.revision {
		refused = precious
	}
	if len(precious) == 0 && (!tooMany || may.revision) {
		return nil
	}
	slices.SortFunc(refused, worstFirst)
	return &Refusal{Total: total, Losses: refused, Revision: revision, Allow: may.with(losses, tooMany, revision), Misspelt: may.misspelt(refused, losses)}
}

// MarkLast marks the losses that are workloads where none stays.
func MarkLast(losses []Loss, stays []Entry) {
	if slices.ContainsFunc(stays, func(e Entry) bool { return IsWorkload(e.ID) }) {
		return
	}
	for i := range losses {
		losses[i].Last = IsWorkload(losses[i].ID)
	}
}

// IsWorkload reports whether an object is of a kind of Kubernetes that runs Pods.
func IsWorkload(id ID) bool {
	switch id.GroupKind.Group {
	case "apps":
		return id.GroupKind.Kind != "ControllerRevision"
	case "batch":
		return true
	default:
		return id.GroupKind == schema.GroupKind{Kind: "Pod"}
	}
}

func worstFirst(a, b Loss) int {
	rank := func(l Loss) int {
		switch {
		case l.Precious:
			return 0
		case l.Last, l.Runs:
			return 1
		default:
			return 2
		}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Within, a.Within), compareIDs(a.ID, b.ID))
}

// NameOf is how people name an object that may go: "namespace/shop", "persistentvolumeclaim/shop/data".
func NameOf(id ID) string { return strings.ToLower(Describe(id)) }

// Allowance is what people let go.
type Allowance struct {
	revision bool
	names    map[string]bool
}

// AllowanceOf reads the annotation of a Kustomization, and the trailer of the commit of a revision
// such as "main@sha1:9f2c…": empty for none. A trailer only names objects: it cannot lift the brake
// for all that a commit removes.
func AllowanceOf(annotation, trailer, revision string) Allowance {
	out := Allowance{names: map[string]bool{}}
	for word := range strings.SplitSeq(annotation, ",") {
		word = strings.TrimSpace(word)
		out.revision = out.revision || names(word, revision)
		out.names[strings.ToLower(word)] = true
	}
	for word := range strings.SplitSeq(trailer, ",") {
		out.names[strings.ToLower(strings.TrimSpace(word))] = true
	}
	return out
}

// Lets reports whether an object may go, whatever else is not known of it.
func (a Allowance) Lets(id ID) bool { return a.revision || a.names[NameOf(id)] }

// Names reports whether an object may go by its own name.
func (a Allowance) Names(id ID) bool { return a.names[NameOf(id)] }

// with is what lets all of these go: what is precious, and what was named already, by its name,
// and the others, if they are too many, by the revision.
func (a Allowance) with(losses []Loss, tooMany bool, revision string) string {
	var words []string
	plain := false
	for _, l := range losses {
		if name := NameOf(l.ID); l.Precious || a.names[name] {
			words = append(words, name)
			continue
		}
		plain = true
	}
	if plain && (tooMany || a.revision) {
		words = append([]string{revision}, words...)
	}
	return strings.Join(words, ", ")
}

// misspelt are the words that are like the name of something that they do not let go, and let nothing else of the
// losses go, as Refusal has them.
func (a Allowance) misspelt(refused, losses []Loss) []string {
	means := map[string]bool{}
	for _, l := range losses {
		means[NameOf(l.ID)] = true
	}
	var out []string
	for _, l := range refused {
		name := NameOf(l.ID)
		kind, rest, _ := strings.Cut(name, "/")
		for word := range a.names {
			other, written, _ := strings.Cut(word, "/")
			if other == kind && !means[word] && propagation.Nearest(written, []string{rest}) != "" {
				out = append(out, fmt.Sprintf("%s (did you mean %s?)", word, name))
			}
		}
	}
	slices.Sort(out)
	return out
}

// names reports whether a word lifts the brake for a
// revision such as "main@sha1:9f2c…": "true", the revision itself, or its
// commit, in full or from seven characters on.
func names(word, revision string) bool {
	switch word {
	case "":
		return false
	case "true", revision:
		return true
	}
	commit := revision[strings.LastIndexAny(revision, ":@")+1:]
	return len(word) >= shortestCommit && strings.HasPrefix(commit, word)
}

// First names up to n objects in words, and says how many more there are.
func First(ids []ID, n int) string {
	var names []string
	for _, id := range ids[:min(n, len(ids))] {
		names = append(names, Describe(id))
	}
	text := strings.Join(names, ", ")
	if more := len(ids) - n; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

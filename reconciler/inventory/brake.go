package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/interpreter/running"
)

// ReasonPruneBlocked says that a revision would remove more than is allowed without a person's word.
const ReasonPruneBlocked = "PruneBlocked"

// ReasonPathNotFound says that a revision has no such path.
const ReasonPathNotFound = "PathNotFound"

// ReasonDeletedAgain says that an object is missing that others delete again and again, and that comes back only later.
const ReasonDeletedAgain = "DeletedAgain"

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
	// Carried is what is known of it by its placement in clusters, where nothing is by its kind; the zero value for nothing.
	Carried running.Class
	// Runs is how many workloads are among what goes with it.
	Runs int
	// Contained are those among what Kustomizations delete with it of which PreciousKind knows. Claims of these go only by
	// their own names.
	Contained []ID
	// Preserved are those claims of it, itself included, that stay in clusters, as their policy preserves what leaves.
	Preserved []ID
	// Claims is how many claims of others go with it with their data, beyond those held, and Kept how many more go here and
	// stay in clusters, as their policies preserve what leaves.
	Claims, Kept int
	// Clusters is how many hold it, and lose it as well: of a Namespace, or of the definition of a kind.
	Clusters int
}

// String is "Namespace/shop with 82 objects".
func (l Loss) String() string {
	switch {
	case l.Last:
		return Describe(l.ID) + ", the last workload"
	case l.Within == 0 && l.Clusters > 0:
		return Describe(l.ID) + " in " + counted(l.Clusters, "cluster")
	case l.Within == 0:
		return Describe(l.ID) + l.stays(l.ID)
	}
	out := Describe(l.ID) + " with " + counted(l.Within, "object")
	if l.Clusters > 0 {
		out += ", in " + counted(l.Clusters, "cluster")
	}
	if within := l.within(); len(within) > 0 {
		out += ": " + strings.Join(within, ", ")
	}
	return out
}

// within names the worst of what goes with it.
func (l Loss) within() []string {
	var out []string
	contained := slices.SortedFunc(slices.Values(l.Contained), func(a, b ID) int { return cmp.Or(cmp.Compare(containedRank(a), containedRank(b)), compareIDs(a, b)) })
	for _, id := range contained[:min(len(contained), namedInRefusal)] {
		text := Describe(id) + l.stays(id)
		if what := PreciousKind(id.GroupKind); id.GroupKind != namespaceKind && l.stays(id) == "" {
			text += " with " + what
		}
		out = append(out, text)
	}
	if more := len(contained) - namedInRefusal; more > 0 {
		out = append(out, fmt.Sprintf("%d more such", more))
	}
	if l.Claims > 0 {
		out = append(out, counted(l.Claims, claimKind.Kind)+" with data")
	}
	switch l.Kept {
	case 0:
	case 1:
		out = append(out, counted(1, claimKind.Kind)+staysInClusters)
	default:
		out = append(out, counted(l.Kept, claimKind.Kind)+stayInClusters)
	}
	if l.Runs > 0 {
		out = append(out, counted(l.Runs, "workload"))
	}
	return out
}

// stays says of a claim that clusters keep it; empty for one that goes there, too.
func (l Loss) stays(id ID) string {
	if !slices.Contains(l.Preserved, id) {
		return ""
	}
	return staysInClusters
}

// Texts about claims whose policies have them stay in clusters.
const (
	staysInClusters = " (goes here; stays in clusters, as its policy preserves it)"
	stayInClusters  = " (go here; stay in clusters, as their policies preserve them)"
)

// containedRank is lower for what is worse to lose: data cannot be restored; the content of a namespace is only counted.
func containedRank(id ID) int {
	switch id.GroupKind {
	case claimKind:
		return 0
	case namespaceKind:
		return 2
	default:
		return 1
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// own are what is to be named of a loss: itself, and each claim that it takes along.
func (l Loss) own() []ID {
	out := []ID{l.ID}
	for _, id := range l.Contained {
		if id.GroupKind == claimKind {
			out = append(out, id)
		}
	}
	return out
}

// Refusal is the brake's answer: why nothing was removed.
type Refusal struct {
	// Total is how many objects are owned.
	Total int
	// Losses are those that nobody allowed, the worst first.
	Losses []Loss
	// Revision is the one that was refused. Stands says that it is applied, as its Kustomization was before: it is that
	// which would have more of it removed.
	Revision string
	Stands   bool
	// Ends says that the Kustomization is being deleted, and that it was to hand these over.
	Ends bool
	// Allow is the value of AllowPruneAnnotation that would let them go.
	Allow string
	// Trailer is the line of a commit that would; empty where it would be too long.
	Trailer string
	// Unclear are words that let nothing go, each with the names that it may mean: "namespace/shpo (did you mean
	// namespace/shop?)". Sorted.
	Unclear []string
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
	unclear := ""
	if len(e.Unclear) > 0 {
		unclear = "allowed is " + strings.Join(e.Unclear, ", ") + "; "
	}
	became := Refused(e.Stands)
	if e.Ends {
		became = "they were to change hands, and nobody wants them any more; nothing of that was removed"
	}
	return fmt.Sprintf("revision %s would remove %d of %d objects (%s): %s; %scommit %s again, or allow it with %s",
		e.Revision, len(e.Losses), e.Total, text, became, unclear, them, HowToAllow(e.Allow, e.Trailer))
}

const namedInRefusal = 3

// Refused says what became of a revision that is refused; stands says that it is applied already, as its Kustomization
// was before.
func Refused(stands bool) string {
	if stands {
		return "nothing more was applied"
	}
	return "nothing was applied"
}

// Check returns a *Refusal if removing these objects from an inventory of
// total objects needs to be allowed by a person. Each must be one that would truly be deleted,
// and stand once.
func (b Brake) Check(total int, losses []Loss, may Allowance, revision string) error {
	var unnamed, precious []Loss
	spaces := may.spaces(losses)
	gone := 0
	for _, l := range losses {
		if l = may.left(l); may.namesAll(l) || !l.Precious && spaces[l.ID.Namespace] {
			continue
		}
		if unnamed, gone = append(unnamed, l), gone+1+l.Within; l.Precious {
			precious = append(precious, l)
		}
	}
	everything := len(unnamed) > 0 && len(unnamed) >= total
	last := slices.ContainsFunc(unnamed, func(l Loss) bool { return l.Last || l.Runs > 0 })
	tooMany := everything || last || gone > b.Count && float64(gone) > b.Share*float64(total)
	refused := unnamed
	if may.revision {
		refused = precious
	}
	if len(precious) == 0 && (!tooMany || may.revision) {
		return nil
	}
	slices.SortFunc(refused, worstFirst)
	unclear := may.unclear(refused, losses)
	return &Refusal{
		Total: total, Losses: refused, Revision: revision,
		Allow: may.with(losses, tooMany, revision), Trailer: may.trailer(losses, tooMany, unclear), Unclear: may.describe(unclear),
	}
}

// FlagLast marks the losses that are workloads where none stays, and, where neither is, those that may be one where nothing
// that stays may.
func FlagLast(losses []Loss, stays []Entry) {
	most := running.Passive
	for _, l := range losses {
		most = max(most, l.class())
	}
	if most == running.Passive || slices.ContainsFunc(stays, func(e Entry) bool { return running.Of(e.ID.GroupKind) >= most }) {
		return
	}
	for i := range losses {
		losses[i].Last = losses[i].class() == most
	}
}

// class is what is known of it by its kind, or, where that is nothing, by its placement.
func (l Loss) class() running.Class {
	if class := running.Of(l.ID.GroupKind); class != running.Foreign {
		return class
	}
	return l.Carried
}

// IsWorkload reports whether an object is of a kind that is known to run Pods: of Kubernetes, or of those whose rules come
// with Flotilla.
func IsWorkload(id ID) bool { return running.Of(id.GroupKind) == running.Runs }

// MayRun reports whether an object that a policy carries is taken for a workload: its kind runs Pods, or is of others, and
// nothing is known of it.
func MayRun(id ID) bool { return running.Of(id.GroupKind) >= running.Foreign }

func worstFirst(a, b Loss) int {
	rank := func(l Loss) int {
		switch {
		case l.Precious:
			return 0
		case l.Last, l.Runs > 0:
			return 1
		default:
			return 2
		}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Within, a.Within), compareIDs(a.ID, b.ID))
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

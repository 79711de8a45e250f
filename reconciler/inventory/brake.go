package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/interpreter/running"
)

// ReasonPruneBlocked says that a revision would remove more than it may without a person's permission.
const ReasonPruneBlocked = "PruneBlocked"

// ReasonPathNotFound says that a revision has no such path.
const ReasonPathNotFound = "PathNotFound"

// ReasonNamespaceTerminating says that the namespace of an object is being deleted: nothing can be applied in it until it is
// gone, and is made anew.
const ReasonNamespaceTerminating = "NamespaceTerminating"

// ReasonDeletedAgain says that an object is missing that others delete again and again, and that it is applied again
// only later.
const ReasonDeletedAgain = "DeletedAgain"

// Brake limits how much of an inventory one revision may remove. What is deleted along with the objects counts, too.
type Brake struct {
	// Share is the part of the inventory that may be removed, from 0 to 1. More is
	// refused if it is also more than Count.
	Share float64
	// Count is the number of objects that may always be removed, unless they are all
	// that there are.
	Count int
}

// DefaultBrake refuses a revision that removes more than a fifth of the
// inventory and more than five objects, or everything, or the last workload.
func DefaultBrake() Brake { return Brake{Share: 0.2, Count: 5} }

// Loss is an object that a revision removes, with what is deleted along with it.
type Loss struct {
	ID ID
	// Within is how many other objects are deleted with it that the revision does not remove itself: what
	// is in a namespace, the objects of a kind, the inventory of a Kustomization.
	Within int
	// Precious says that it is used by others, or holds data. Such an object is deleted only if people name it.
	Precious bool
	// Last says that no workload is left without it.
	Last bool
	// Carried is its class by its placement in clusters, if its kind is not known; the zero value for none.
	Carried running.Class
	// Runs is how many workloads are deleted with it.
	Runs int
	// Contained are the objects of precious kinds that Kustomizations delete with it. Volume claims among these have to
	// be named themselves.
	Contained []ID
	// Preserved are the volume claims among it and Contained that stay in clusters, as their policies preserve them.
	Preserved []ID
	// Claims is how many volume claims, beyond Contained, are deleted with it together with their data. Kept is how
	// many more are deleted on the control plane and stay in clusters, as their policies preserve them.
	Claims, Kept int
	// Clusters is, for a Namespace or a CustomResourceDefinition, how many clusters have it and lose it as well.
	Clusters int
	// Hosts says that workloads are among what is deleted with a Namespace.
	Hosts bool
	// HandedOver says that it is a Kustomization of which others take over all that it applied: nothing is lost with it.
	HandedOver bool
}

// String returns a text such as "Namespace/shop with 82 objects".
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

// within returns texts about the worst of what is deleted with it.
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

// stays returns a text if clusters keep a volume claim; empty for one that is deleted there, too.
func (l Loss) stays(id ID) string {
	if !slices.Contains(l.Preserved, id) {
		return ""
	}
	return staysInClusters
}

// Texts about volume claims that clusters keep because of their policies.
const (
	staysInClusters = " (goes here; stays in clusters, as its policy preserves it)"
	stayInClusters  = " (go here; stay in clusters, as their policies preserve them)"
)

// containedRank is lower for what is worse to lose. Data comes first, as it cannot be restored, and Namespaces last, as
// their content is only counted.
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

// own returns what has to be named to allow a loss: the object itself, and each volume claim that is deleted with it.
func (l Loss) own() []ID {
	out := []ID{l.ID}
	for _, id := range l.Contained {
		if id.GroupKind == claimKind {
			out = append(out, id)
		}
	}
	return out
}

// Refusal is the error of the brake: why nothing was removed.
type Refusal struct {
	// Total is how many objects are owned.
	Total int
	// Losses are those that people have not allowed, the worst first.
	Losses []Loss
	// Revision is the one that was refused. Stands says that it is applied already, and that an edit of the
	// Kustomization would remove the objects.
	Revision string
	Stands   bool
	// Ends says that the Kustomization is being deleted, and that others were to take these objects over.
	Ends bool
	// Allow is the value of AllowPruneAnnotation that would allow them.
	Allow string
	// Trailer is the line of a commit message that would; empty if it would be too long.
	Trailer string
	// Unclear are words that allow nothing, each with the names that it may mean: "namespace/shpo (did you mean
	// namespace/shop?)". They are sorted.
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
		unclear = "not allowed by " + strings.Join(e.Unclear, ", ") + "; "
	}
	became := Refused(e.Stands)
	if e.Ends {
		became = "they were to change hands, and nobody wants them any more; nothing of that was removed"
	}
	return fmt.Sprintf("revision %s would remove %d of %d objects (%s): %s; %s%scommit %s again, or allow it with %s",
		e.Revision, len(e.Losses), e.Total, text, became, unclear, e.atOnce(), them, HowToAllow(e.Allow, e.Trailer))
}

// atOnce says of a Namespace in which something runs that its name in a trailer is not the way to move that: what is not
// named stays until its replacement is applied. It is empty where nothing runs in one.
func (e *Refusal) atOnce() string {
	for _, l := range e.Losses {
		runs := l.Hosts || slices.ContainsFunc(e.Losses, func(in Loss) bool { return in.ID.Namespace == l.ID.Name && IsWorkload(in.ID) })
		if l.ID.GroupKind == namespaceKind && runs {
			return "a Namespace that is allowed by its name goes at once with what runs in it, before a replacement is up: let that come, and be ready, by a commit before; "
		}
	}
	return ""
}

// Disclaim says of words that they allow nothing, as there is no such object, and takes them off the trailer.
func (e *Refusal) Disclaim(words []string) {
	key, names, proposed := strings.Cut(e.Trailer, ": ")
	if proposed {
		stay := slices.DeleteFunc(strings.Split(names, ", "), func(name string) bool { return slices.Contains(words, name) })
		if e.Trailer = ""; len(stay) > 0 {
			e.Trailer = key + ": " + strings.Join(stay, ", ")
		}
	}
	for _, word := range words {
		if !slices.ContainsFunc(e.Unclear, func(text string) bool { return strings.HasPrefix(text, word+" ") || strings.HasPrefix(text, word+",") }) {
			e.Unclear = append(e.Unclear, excerpt.Line(word)+" (there is no such object, or not any more)")
		}
	}
	slices.Sort(e.Unclear)
}

const namedInRefusal = 3

// Refused returns a text about the outcome of a refused revision. stands says that it is applied already, by the
// Kustomization as it was before.
func Refused(stands bool) string {
	if stands {
		return "nothing more was applied"
	}
	return "nothing was applied"
}

// Check returns a *Refusal if people have to allow that these objects are removed from an inventory of
// total objects. Each object must be one that would truly be deleted, and be listed
// once.
func (b Brake) Check(total int, losses []Loss, may Allowance, revision string) error {
	var unnamed, precious []Loss
	spaces := may.spaces(losses)
	gone := 0
	for _, l := range losses {
		if l = may.left(l); l.HandedOver || may.namesAll(l) || !l.Precious && spaces[l.ID.Namespace] {
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
		Allow: may.with(losses, tooMany, revision), Trailer: may.trailer(losses, tooMany, unclear), Unclear: may.describe(unclear, refused),
	}
}

// FlagLast sets Last on the losses that are workloads if no workload stays. If none of the losses is known to be a
// workload, it does the same with objects that may be one.
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

// class returns the class of the object by its kind, or by its placement if the kind is not known.
func (l Loss) class() running.Class {
	if class := running.Of(l.ID.GroupKind); class != running.Foreign {
		return class
	}
	return l.Carried
}

// IsWorkload reports whether an object is of a kind that is known to run Pods: one of Kubernetes, or a third-party kind
// for which Flotilla has rules.
func IsWorkload(id ID) bool { return running.Of(id.GroupKind) == running.Runs }

// MayRun reports whether a propagated object is taken for a workload: its kind runs Pods, or is a third-party kind of
// which nothing is known.
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

// First returns a text that names the first n objects, and how many more there are.
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

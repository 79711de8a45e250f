package situation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/unmet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Note is about an object that is valid, but has no effect, or less than it asks for, as after
// a typo.
type Note struct {
	// Kind, Namespace and Name identify the object, or the first of several with the same
	// message. They are empty if the note is about the fleet, or counts objects.
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Message   string `json:"message"`
	// Next is what to do, or where to look.
	Next string `json:"next"`
}

// object returns the kind and name, as in "Deployment shop/web"; empty for a note about the fleet.
func (n Note) object() string {
	return strings.TrimSpace(Problem{Kind: n.Kind, Namespace: n.Namespace, Name: n.Name}.Object())
}

// countTime is how long it may take until a new policy's counts are known.
const countTime = 10 * time.Second

// correctCluster is the next step for a policy that names a cluster that does not exist.
const correctCluster = "correct the name, or join the cluster: flotilla get clusters"

// idle returns notes that a policy which is ready selects nothing, or names clusters that do not
// exist, which are in remarks.
func idle(p policyv1alpha1.Policy, kind string, remarks []string, now time.Time) []Note {
	var out []Note
	add := func(message, next string) {
		out = append(out, Note{Kind: kind, Namespace: p.GetNamespace(), Name: p.GetName(), Message: message, Next: next})
	}
	if remark.IsIdle(p, now.Sub(p.GetCreationTimestamp().Time) >= countTime) && untaken(p) == "" {
		add(remark.CarriesNothing, remark.IdleNext(p, kind))
	}
	for _, text := range remarks {
		add(text, correctCluster)
	}
	return out
}

// untaken returns a policy's message about objects that it selects and could not claim; empty if
// there are none.
func untaken(p policyv1alpha1.Policy) string {
	ready := apimeta.FindStatusCondition(p.PropagationStatus().Conditions, policyv1alpha1.PolicyReady)
	if ready == nil || ready.Reason != policyv1alpha1.PolicyReasonNotTakenUp {
		return ""
	}
	return ready.Message
}

// UntakenOf returns a policy's message about an object, such as "Deployment shop/web", that it
// selects and could not claim; empty if it has none. A policy names only the last of several.
func UntakenOf(p policyv1alpha1.Policy, object string) string {
	if last := p.PropagationStatus().LastProblem; last != nil && last.Object == object && untaken(p) != "" {
		return last.Message
	}
	return ""
}

// unbound returns the problem that templates which a policy selects have no binding because of
// an error, and run nowhere; the zero value means none. Only the policy's counts
// show that.
func unbound(p policyv1alpha1.Policy, kind string) Problem {
	status := p.PropagationStatus()
	missing := status.Templates - status.Bindings
	if missing <= 0 || status.LastProblem == nil {
		return Problem{}
	}
	return Problem{State: Failed, Kind: kind, Namespace: p.GetNamespace(), Name: p.GetName(),
		Message: fmt.Sprintf("%d of its %d templates %s no binding, and %s nowhere; the last problem is of %s: %s", missing, status.Templates,
			plural(int(missing), "has", "have"), plural(int(missing), "runs", "run"), status.LastProblem.Object, status.LastProblem.Message),
		Next: "flotilla explain KIND/NAME of each says why: flotilla describe " + strings.ToLower(kind) + " " + p.GetName() + wording.InNamespace(p.GetNamespace())}
}

// remarks returns texts about clusters that a policy or an override names or excludes, and that neither exist
// nor are registered; none if the clusters are not known.
func remarks(s *Survey, of metav1.Object, named, excluded []string) []string {
	if s.blind {
		return nil
	}
	return propagation.Remarks(of, named, excluded, names(s))
}

// names are the clusters that exist or are registered.
func names(s *Survey) []string {
	out := slices.Clone(s.awaited)
	for i := range s.fleet.Clusters {
		out = append(out, s.fleet.Clusters[i].Name)
	}
	return out
}

// unfulfilled adds a problem for what is ready by its conditions, and keeps a commit from success.
func unfulfilled(s *Survey) {
	for i, k := range s.fleet.Kustomizations {
		if held := unmet.Released(s.asides.released, s.owned[i]); k.State == Ready && len(held) > 0 {
			n := released(held)[0]
			s.asides.reported = append(s.asides.reported, held...)
			s.problem(Problem{State: Progressing, Kind: n.Kind, Namespace: n.Namespace, Name: n.Name, Message: n.Message, Next: n.Next})
		}
	}
}

// Override adds an override, after the clusters. It is shown only if it names clusters or
// objects that do not exist.
func (s *Survey) Override(o policyv1alpha1.Override) {
	if s.within != "" && o.GetNamespace() == "" {
		return // it applies to other namespaces, too
	}
	s.mistyped.overrides = addNamer(s.mistyped.overrides, namer{kind: overrideKind(o), namespace: o.GetNamespace(), name: o.GetName()}, o.OverrideSpec().ResourceSelectors)
	for _, remark := range remarks(s, o, override.NamedClusters(o), override.ExcludedClusters(o)) {
		s.fleet.Notes = append(s.fleet.Notes, Note{Kind: overrideKind(o), Namespace: o.GetNamespace(), Name: o.GetName(), Message: remark, Next: correctCluster})
	}
}

// Workload adds an object of a kind that only runs in clusters, by its metadata, after the
// bindings. An object that no policy selects runs nowhere, and an edit of a moment ago may not
// have reached the clusters.
func (s *Survey) Workload(obj *metav1.PartialObjectMetadata) {
	gvk := obj.GroupVersionKind()
	id := inventory.ID{Namespace: obj.Namespace, Name: obj.Name, GroupKind: gvk.GroupKind()}
	r := selector.Resource{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: obj.Namespace, Name: obj.Name, Labels: obj.Labels}
	if found := s.reach[id]; found != nil {
		edited(s, obj, id, found)
		return
	}
	if s.untaken[wording.Title(id)] || !s.counts(id) || strings.HasPrefix(obj.Namespace, "kube-") || !propagation.Propagates(r, propagation.SkipRules{}) {
		return
	}
	if s.mistyped.carriers.Take(obj) {
		return // it is about to have a binding, or waits for its next change
	}
	s.uncarried = append(s.uncarried, id)
}

// firstLook is how long a control plane may take after a start to compare its store with
// all clusters that answer.
const firstLook = 45 * time.Second

// Started adds when the control plane was started, and its present time. Right after a start
// it is not known whether the store was restored from an older backup, if there were clusters
// before; once a cluster reports it, it is.
func (s *Survey) Started(at, now time.Time) {
	up := now.Sub(at)
	if up >= firstLook || s.held || s.oldest.IsZero() || !s.oldest.Before(at) {
		return
	}
	s.fleet.Notes = append(s.fleet.Notes, Note{Message: fmt.Sprintf("the control plane was started %s ago: whether it was set back is not known yet", duration.HumanDuration(max(up, 0))),
		Next: fmt.Sprintf("ask again in %s", (firstLook - up).Round(time.Second))})
}

// drift is a template whose objects in clusters differ from it.
type drift struct {
	of      inventory.ID
	message string
	// kept is true if dispatching is suspended to some of its clusters, where nothing is corrected.
	kept bool
}

// drifting returns a note about what was changed in members and is not to be corrected; none if
// there is nothing.
func drifting(all []drift) []Note {
	if len(all) == 0 {
		return nil
	}
	first := all[0].of
	ids := make([]inventory.ID, len(all))
	for i := range all {
		ids[i] = all[i].of
	}
	return []Note{{Kind: first.GroupKind.Kind, Namespace: first.Namespace, Name: first.Name,
		Message: "clusters hold something else than it says, and it is left so: " + all[0].message + wording.Besides(ids),
		Next:    "change it back there, or " + rollup.PutBack(all[0].kept) + "; flotilla tree " + wording.Object(first)}}
}

// uncarried returns a note about the workloads that no policy selects, which are sorted; none if
// there are none.
func uncarried(ids []inventory.ID) []Note {
	if len(ids) == 0 {
		return nil
	}
	first := ids[0]
	next := wording.Explains(first)
	what, where := wording.Nowhere(ids)
	if len(ids) == 1 {
		return []Note{{Kind: first.GroupKind.Kind, Namespace: first.Namespace, Name: first.Name, Message: "no policy carries it, so that " + where, Next: next}}
	}
	var names []string
	for _, id := range ids[:min(len(ids), wording.Most)] {
		names = append(names, wording.Title(id))
	}
	message := fmt.Sprintf("%d %s are carried by no policy, so that %s: %s", len(ids), what, where, strings.Join(names, ", "))
	if more := len(ids) - len(names); more > 0 {
		message += fmt.Sprintf(" and %d more", more)
	}
	return []Note{{Message: message, Next: next}}
}

// released returns a note about what still runs although no policy selects it any more; none if
// there is nothing.
func released(ids []inventory.ID) []Note {
	if len(ids) == 0 {
		return nil
	}
	first := ids[0]
	return []Note{{Kind: first.GroupKind.Kind, Namespace: first.Namespace, Name: first.Name,
		Message: "no policy carries it: what runs in clusters runs on, and its edits stay on the control plane" + wording.Besides(ids),
		Next:    wording.Explains(first)}}
}

// waitsInVain adds to a Kustomization's problem which of its templates no policy selects any
// more: their changes stay on the control plane.
func (a *asides) waitsInVain(p *Problem, owned []inventory.ID) {
	var ids []inventory.ID
	for _, id := range owned {
		if slices.Contains(a.released, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	p.Message += "; no policy carries " + wording.Title(ids[0]) + " any more" + wording.Besides(ids)
	p.Next = wording.Explains(ids[0])
}

// isAbout reports whether a problem is about the Kustomization k.
func (p *Problem) isAbout(k Kustomization) bool {
	return k.Namespace == p.Namespace && k.Name == p.Name
}

// empty is the note about a fleet without clusters.
var empty = Note{
	Message: "there is no cluster in the fleet, so that nothing runs anywhere",
	Next:    "flotilla join NAME --cluster-kubeconfig FILE, or flotilla token create --cluster-name NAME --print-register-command=agent",
}

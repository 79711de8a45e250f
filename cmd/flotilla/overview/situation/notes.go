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
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Note is something that is not wrong by itself, but does nothing, or not all that its
// words say: a typo looks like that.
type Note struct {
	// Kind, Namespace and Name are of the object; of the first of them where the message
	// says the same of several, and empty where it is about the fleet or counts them.
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Message   string `json:"message"`
	// Next is what to do, or where to look.
	Next string `json:"next"`
}

// object is "Deployment shop/web"; empty where the note is about the fleet.
func (n Note) object() string {
	return strings.TrimSpace(Problem{Kind: n.Kind, Namespace: n.Namespace, Name: n.Name}.Object())
}

// settling is how long a policy may take, once it is made, until it is known what it carries.
const settling = 10 * time.Second

// correctCluster is what to do about a policy that names a cluster that is not there.
const correctCluster = "correct the name, or join the cluster: flotilla get clusters"

// idle are notes that a policy that can act carries nothing, or names clusters that are not
// in the fleet, which remarks report.
func idle(p policyv1alpha1.Policy, kind string, remarks []string, now time.Time) []Note {
	var out []Note
	add := func(message, next string) {
		out = append(out, Note{Kind: kind, Namespace: p.GetNamespace(), Name: p.GetName(), Message: message, Next: next})
	}
	status := p.PropagationStatus()
	if age := now.Sub(p.GetCreationTimestamp().Time); age >= settling && status.Templates == 0 && untaken(p) == "" && status.ObservedGeneration == p.GetGeneration() && apimeta.IsStatusConditionTrue(status.Conditions, policyv1alpha1.PolicyReady) {
		add(carriesNothing, remark.IdleNext(p, kind))
	}
	for _, text := range remarks {
		add(text, correctCluster)
	}
	return out
}

// untaken is what a policy says of objects that it means and could not take up; empty for
// nothing.
func untaken(p policyv1alpha1.Policy) string {
	ready := apimeta.FindStatusCondition(p.PropagationStatus().Conditions, policyv1alpha1.PolicyReady)
	if ready == nil || ready.Reason != policyv1alpha1.PolicyReasonNotTakenUp {
		return ""
	}
	return ready.Message
}

// UntakenOf is what a policy says of an object, such as "Deployment shop/web", that it means
// and could not take up; empty where it says nothing, as it does of the last of several only.
func UntakenOf(p policyv1alpha1.Policy, object string) string {
	if last := p.PropagationStatus().LastProblem; last != nil && last.Object == object && untaken(p) != "" {
		return last.Message
	}
	return ""
}

// unbound is the problem that templates that a policy selects have no binding, and so run
// nowhere, since something is wrong with them; the zero value is none. They are seen by
// nothing else than the policy's counts.
func unbound(p policyv1alpha1.Policy, kind string) Problem {
	status := p.PropagationStatus()
	missing := status.Templates - status.Bindings
	if missing <= 0 || status.LastProblem == nil {
		return Problem{}
	}
	return Problem{State: Failed, Kind: kind, Namespace: p.GetNamespace(), Name: p.GetName(),
		Message: fmt.Sprintf("%d of its %d templates %s no binding, and %s nowhere; the last problem is of %s: %s", missing, status.Templates,
			plural(int(missing), "has", "have"), plural(int(missing), "runs", "run"), status.LastProblem.Object, status.LastProblem.Message),
		Next: "flotilla explain KIND/NAME of each says why: flotilla describe " + strings.ToLower(kind) + " " + p.GetName() + inNamespace(p.GetNamespace())}
}

// remarks are the texts about clusters that a policy, or an override, names, and excludes, and that are not
// there, nor awaited; none where it is not known which are.
func remarks(s *Survey, of metav1.Object, named, excluded []string) []string {
	if s.blind {
		return nil
	}
	fleet := make([]string, len(s.fleet.Clusters))
	for i := range s.fleet.Clusters {
		fleet[i] = s.fleet.Clusters[i].Name
	}
	return propagation.Remarks(of, named, excluded, append(fleet, s.awaited...))
}

// Override adds an override, after the clusters. Only those are shown that name clusters, or
// objects, which are not there.
func (s *Survey) Override(o policyv1alpha1.Override) {
	if s.within != "" && o.GetNamespace() == "" {
		return // it is about other namespaces, too
	}
	s.mistyped.overrides = addNamer(s.mistyped.overrides, namer{kind: overrideKind(o), namespace: o.GetNamespace(), name: o.GetName()}, o.OverrideSpec().ResourceSelectors)
	for _, remark := range remarks(s, o, override.NamedClusters(o), override.ExcludedClusters(o)) {
		s.fleet.Notes = append(s.fleet.Notes, Note{Kind: overrideKind(o), Namespace: o.GetNamespace(), Name: o.GetName(), Message: remark, Next: correctCluster})
	}
}

// Workload adds an object that runs in clusters only, by its metadata. It is to be added
// after the bindings. One that no policy carries runs nowhere, and one that was edited a moment
// ago may not be in clusters as it is.
func (s *Survey) Workload(obj *metav1.PartialObjectMetadata) {
	gvk := obj.GroupVersionKind()
	id := inventory.ID{Namespace: obj.Namespace, Name: obj.Name, GroupKind: gvk.GroupKind()}
	r := selector.Resource{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: obj.Namespace, Name: obj.Name, Labels: obj.Labels}
	if found := s.reach[id]; found != nil {
		edited(s, obj, id, found)
		return
	}
	if s.untaken[titleOf(id)] || !s.counts(id) || strings.HasPrefix(obj.Namespace, "kube-") || !propagation.Propagates(r, propagation.SkipRules{}) {
		return
	}
	if _, claimed := propagation.Claimed(obj); claimed {
		return // it is about to have a binding, or waits for its next change
	}
	s.uncarried = append(s.uncarried, id)
}

// firstLook is how long a control plane may take, after a start, until it has compared
// what is in all clusters that answer.
const firstLook = 45 * time.Second

// Started adds when the control plane was started, and what time it is there. Right after a
// start nobody has compared yet whether its store was set back, which it can have been where
// clusters were there before; once one says so, it was.
func (s *Survey) Started(at, now time.Time) {
	up := now.Sub(at)
	if up >= firstLook || s.held || s.oldest.IsZero() || !s.oldest.Before(at) {
		return
	}
	s.fleet.Notes = append(s.fleet.Notes, Note{Message: fmt.Sprintf("the control plane was started %s ago: whether it was set back is not known yet", duration.HumanDuration(max(up, 0))),
		Next: fmt.Sprintf("ask again in %s", (firstLook - up).Round(time.Second))})
}

// mostNamed is how many objects a note names.
const mostNamed = 3

// drift is a template of which clusters hold something else than it says.
type drift struct {
	of      inventory.ID
	message string
	// kept: changes are kept from some of its clusters, so that nothing is put back there.
	kept bool
}

// drifting is a note on what members changed and what is to be left so; none if there is
// nothing.
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
		Message: "clusters hold something else than it says, and it is left so: " + all[0].message + besides(ids),
		Next:    "change it back there, or " + rollup.PutBack(all[0].kept) + "; flotilla tree " + strings.ToLower(first.GroupKind.Kind) + "/" + first.Name + inNamespace(first.Namespace)}}
}

// besides says that the same is true of the others of several objects; empty for one.
func besides(ids []inventory.ID) string {
	var names []string
	for _, id := range ids[1:min(len(ids), mostNamed)] {
		names = append(names, titleOf(id))
	}
	more := len(ids) - 1
	if more == 0 {
		return ""
	}
	text := fmt.Sprintf("; the same of %d more: %s", more, strings.Join(names, ", "))
	if more >= mostNamed {
		text += " …"
	}
	return text
}

// uncarried is a note on the workloads that no policy carries, which come in order; none if
// there are none.
func uncarried(ids []inventory.ID) []Note {
	if len(ids) == 0 {
		return nil
	}
	first := ids[0]
	next := "flotilla explain " + strings.ToLower(first.GroupKind.Kind) + "/" + first.Name + inNamespace(first.Namespace)
	what, where := nowhere(ids)
	if len(ids) == 1 {
		return []Note{{Kind: first.GroupKind.Kind, Namespace: first.Namespace, Name: first.Name, Message: "no policy carries it, so that " + where, Next: next}}
	}
	var names []string
	for _, id := range ids[:min(len(ids), mostNamed)] {
		names = append(names, titleOf(id))
	}
	message := fmt.Sprintf("%d %s are carried by no policy, so that %s: %s", len(ids), what, where, strings.Join(names, ", "))
	if more := len(ids) - len(names); more > 0 {
		message += fmt.Sprintf(" and %d more", more)
	}
	return []Note{{Message: message, Next: next}}
}

// nowhere is what several objects are, and what comes of them as no policy carries them: claims run nowhere else, either.
func nowhere(ids []inventory.ID) (what, comes string) {
	if slices.ContainsFunc(ids, func(id inventory.ID) bool { return volumes.IsVolumeClaim(id.GroupKind) }) {
		return "objects", "no cluster has " + plural(len(ids), "it", "them")
	}
	return "workloads", plural(len(ids), "it runs", "they run") + " nowhere"
}

// released is a note on what runs on although no policy carries it any more; none if there
// is nothing.
func released(ids []inventory.ID) []Note {
	if len(ids) == 0 {
		return nil
	}
	first := ids[0]
	return []Note{{Kind: first.GroupKind.Kind, Namespace: first.Namespace, Name: first.Name,
		Message: "no policy carries it: what runs in clusters runs on, and its edits stay on the control plane" + besides(ids),
		Next:    "flotilla explain " + strings.ToLower(first.GroupKind.Kind) + "/" + first.Name + inNamespace(first.Namespace)}}
}

// waitsInVain adds to what a Kustomization waits for which of its templates no policy carries any
// more: what it changed of them stays on the control plane.
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
	p.Message += "; no policy carries " + titleOf(ids[0]) + " any more" + besides(ids)
	p.Next = "flotilla explain " + strings.ToLower(ids[0].GroupKind.Kind) + "/" + ids[0].Name + inNamespace(ids[0].Namespace)
}

// isAbout reports whether a problem of a Kustomization is one of k.
func (p *Problem) isAbout(k Kustomization) bool {
	return k.Namespace == p.Namespace && k.Name == p.Name
}

// empty is the note that there is no cluster.
var empty = Note{
	Message: "there is no cluster in the fleet, so that nothing runs anywhere",
	Next:    "flotilla join NAME --cluster-kubeconfig FILE, or flotilla token create --cluster-name NAME --print-register-command=agent",
}

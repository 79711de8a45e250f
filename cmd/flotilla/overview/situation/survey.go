package situation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/readiness"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/allotment"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/owed"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/sorting"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/unmet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/standing"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/taints"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// Clusters is the name in Unread for clusters.
const Clusters = "clusters"

// Namespaces is the name in Unread if it is not known whether the namespace exists.
const Namespaces = "Namespaces"

// readyCondition is the condition type that all kinds here have.
const readyCondition = "Ready"

// Survey takes the objects of a control plane, in any order, and summarizes them. It
// keeps only what it shows of each, so that lists can be read page by page. It is
// not safe for concurrent use.
type Survey struct {
	now    time.Time
	within string
	held   bool
	fleet  Fleet
	reach  map[inventory.ID]*reach
	ownedObjects
	members counts
	silent  rollup.Silences
	blind   bool // clusters may not be read
	// uncarried are workloads that no policy selects.
	uncarried []inventory.ID
	mistyped  mistyped
	untaken   map[string]bool // objects that a policy could not claim, by title
	asides    asides
	owed      owed.Owed
	awaited   []string  // clusters that are registered and have never reported
	oldest    time.Time // when the first cluster joined; zero if there is none
}

// reach has the clusters in which a template should be, and whether it is ready there.
type reach struct {
	clusters, ready []string
	// counted is true if it counts as ready, and seen has the generations that ready clusters report.
	counted bool
	seen    map[string]int64
	// everywhere is true for a Namespace, which goes to all clusters.
	everywhere bool
}

// NewSurvey returns an empty Survey. With a namespace it only counts templates in
// it, or owned by its Kustomizations, which have to be added
// first.
func NewSurvey(now time.Time, namespace string) *Survey {
	return &Survey{
		now: now, within: namespace,
		fleet: Fleet{APIVersion: APIVersion, Kind: "FleetStatus", Namespace: namespace, Sources: []Source{}, Kustomizations: []Kustomization{}, Clusters: []Cluster{}, Problems: []Problem{}},
		reach: map[inventory.ID]*reach{}, ownedObjects: ownedObjects{owned: map[int][]inventory.ID{}, leaving: map[int]bool{}, ending: map[string]bool{}, braked: map[int]string{}, astray: map[int]child{}, holders: holders{}}, members: counts{}, silent: rollup.Silences{}, untaken: map[string]bool{}, owed: owed.Owed{},
	}
}

// Unread adds a kind that the caller may not read. For a single namespace, kinds without
// a namespace are ignored, except for clusters.
func (s *Survey) Unread(what string) {
	if s.within != "" && !isNamespaced(what) && what != Clusters && what != Namespaces {
		return
	}
	s.fleet.Unread = append(s.fleet.Unread, what)
	s.blind = s.blind || what == Clusters
}

// Nothing reports whether no source, Kustomization or template was seen.
func (s *Survey) Nothing() bool { return s.fleet.nothing() }

// Namespaces returns the namespaces that may have templates that count, sorted; a
// single empty name means all.
func (s *Survey) Namespaces() []string {
	if s.within == "" {
		return []string{""}
	}
	out := []string{s.within}
	for _, ids := range s.owned {
		for _, id := range ids {
			if id.Namespace != "" {
				out = append(out, id.Namespace)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// counts reports whether a template counts.
func (s *Survey) counts(id inventory.ID) bool {
	if s.within == "" || id.Namespace == s.within {
		return true
	}
	for _, ids := range s.owned {
		if slices.Contains(ids, id) {
			return true
		}
	}
	return false
}

// judge returns the state by conditions, and the message of Ready. observed is true if
// the conditions are about the object's present generation.
func judge(conditions []metav1.Condition, observed bool) (State, *metav1.Condition) {
	ready := apimeta.FindStatusCondition(conditions, readyCondition)
	switch {
	case ready == nil:
		return Progressing, nil
	case ready.Status == metav1.ConditionFalse:
		return Failed, ready
	case ready.Status == metav1.ConditionTrue && observed:
		return Ready, ready
	case ready.Reason == remark.ClusterSilent:
		return Unknown, ready
	default:
		return Progressing, ready
	}
}

// ReadOnly adds that the control plane does not accept writes, with its own message.
func (s *Survey) ReadOnly(notice string) {
	s.problem(Problem{State: Failed, Kind: controlPlaneKind, Name: "flotilla", Message: notice + "; what is said of the fleet may be from before",
		Next: "make room on the disk of its --data-dir, or of its store; it goes on by itself then"})
}

// Leaderless adds that no process runs the loops, and since when.
func (s *Survey) Leaderless(since string) {
	s.problem(Problem{State: Failed, Kind: controlPlaneKind, Name: "flotilla", Message: since + "; what is said of the fleet is from before",
		Next: "wait half a minute for a replica to take over; if none does, see that flotillad serve runs, or flotillad controllers beside --controllers=-*"})
}

// Source adds a source.
func (s *Survey) Source(of origins.Object) {
	facts, at := origins.FactsOf(of), origins.Of(of)
	state, ready := judge(origins.Conditions(of), facts.Observed == of.GetGeneration())
	out := Source{Kind: at.Kind, Namespace: at.Namespace, Name: at.Name, URL: remark.Address(facts.URL), State: state}
	if ready != nil {
		out.Message = ready.Message
	}
	if kind, _ := origins.KindOf(at.Kind); kind.Given && facts.Unverified != "" { // its conditions are those of who makes it
		out.State, out.Message = Failed, facts.Unverified
		if facts.Fetching {
			out.State = Progressing
		}
	}
	if a := of.GetArtifact(); a != nil {
		out.Revision, out.Fetched = a.Revision, a.LastUpdateTime.DeepCopy()
	}
	if facts.Suspended {
		out.State = Suspended
		s.asides.halt(at.Kind, at.Namespace, at.Name)
	}
	s.asides.taken.Add(at, facts.History)
	s.fleet.Sources = append(s.fleet.Sources, out)
	s.problem(Problem{State: out.State, Kind: at.Kind, Namespace: at.Namespace, Name: at.Name,
		Message: cmp.Or(out.Message, "nobody has looked at it yet"), Next: remark.SourceNext(of, ready)})
}

// Kustomization adds a Kustomization.
func (s *Survey) Kustomization(ks *kustomizev1.Kustomization) {
	state, ready := judge(ks.Status.Conditions, ks.Status.ObservedGeneration == ks.Generation)
	out := Kustomization{
		Namespace: ks.Namespace, Name: ks.Name, Path: cmp.Or(ks.Spec.Path, "./"),
		Source: ks.Spec.SourceRef.Kind + "/" + ks.Spec.SourceRef.Name, Revision: standing.Revision(ks), State: state,
	}
	if ns := ks.Spec.SourceRef.Namespace; ns != "" && ns != ks.Namespace {
		out.Source = ks.Spec.SourceRef.Kind + "/" + ns + "/" + ks.Spec.SourceRef.Name
	}
	if ready != nil {
		out.Message = ready.Message
		s.attempt(len(s.fleet.Kustomizations), ks, ready.Reason)
	}
	if ks.Spec.Suspend {
		out.State = Suspended
		s.asides.halt(kustomizev1.KustomizationKind, ks.Namespace, ks.Name)
	}
	out.Outside = inventory.PlaceOf(ks.Status).Secret
	if entries, err := inventory.Read(ks.Status.Inventory); err == nil { // what an invalid inventory owns is not known
		out.Objects = len(entries)
		for _, e := range entries {
			if out.Outside == "" {
				s.owned[len(s.fleet.Kustomizations)] = append(s.owned[len(s.fleet.Kustomizations)], e.ID)
			}
		}
	}
	s.leaving[len(s.fleet.Kustomizations)] = ks.DeletionTimestamp != nil
	s.fleet.Kustomizations = append(s.fleet.Kustomizations, out)
	s.problem(Problem{State: out.State, Kind: kustomizev1.KustomizationKind, Namespace: ks.Namespace, Name: ks.Name,
		Message: standing.Attempted(ks, cmp.Or(out.Message, "nobody has looked at it yet")), Next: remark.KustomizationNext(ks, ready)})
	if r, hangs := remark.Hanging(ks, s.now); hangs {
		s.problem(Problem{State: Progressing, Kind: kustomizev1.KustomizationKind, Namespace: ks.Namespace, Name: ks.Name, Message: r.Message, Next: r.Next})
	}
}

// Cluster adds a member, before the bindings: what a cluster reported that has stopped to
// answer does not count. heard is when its agent last reported; zero if it never did, or
// there is none.
func (s *Survey) Cluster(c *clusterv1alpha1.Cluster, heard time.Time) {
	hold(s, c.Status.Conditions)
	s.asides.passed.join(c)
	if joined := c.CreationTimestamp.Time; s.oldest.IsZero() || joined.Before(s.oldest) {
		s.oldest = joined
	}
	if silence, silent := rollup.SilenceOf(c); silent {
		s.silent[c.Name] = silence
	}
	state, ready := judge(c.Status.Conditions, true)
	out := Cluster{
		Name: c.Name, State: state, Version: c.Status.KubernetesVersion, Mode: string(c.Spec.SyncMode),
		Provider: c.Spec.Provider, Region: c.Spec.Region, Leaving: !c.DeletionTimestamp.IsZero(),
		closed: closed{Cordoned: slices.ContainsFunc(c.Spec.Taints, isCordon), Drained: failover.Drains(c)}, Taints: taints.Own(c.Spec.Taints),
	}
	if ready != nil {
		out.Reason, out.Message = ready.Reason, ready.Message
		if ready.Status == metav1.ConditionUnknown && ready.Reason != clusterv1alpha1.ClusterNotHeardYetReason {
			out.State = Failed // a silent agent does not come back without intervention
		}
	}
	if n := c.Status.NodeSummary; n != nil {
		out.Nodes = &Count{Total: int(n.TotalNum), Ready: int(n.ReadyNum)}
	}
	if c.Spec.SyncMode == clusterv1alpha1.Pull && !heard.IsZero() {
		out.Heard = &metav1.Time{Time: heard}
	}
	out.CPU, out.Memory = allotment.Of(c.Status.ResourceSummary)
	s.fleet.Clusters = append(s.fleet.Clusters, out)
	message := cmp.Or(out.Message, "it has not reported yet")
	if out.Heard != nil && out.silent() {
		message += "; its agent was last heard " + ago(s.now, out.Heard.Time)
	}
	says := remark.NotReady(c, ready, message)
	s.problem(Problem{State: out.State, Kind: clusterv1alpha1.ResourceKindCluster, Name: c.Name, Message: says.Message, Next: says.Next})
	for _, r := range remark.Of(c) {
		p := Problem{State: Failed, Kind: clusterv1alpha1.ResourceKindCluster, Name: c.Name, Message: r.Message, Next: r.Next}
		if r.Passes {
			p.State = Progressing
		}
		s.problem(p)
	}
}

// Awaited adds a cluster that is registered and whose agent has never reported.
func (s *Survey) Awaited(name string, since time.Time) {
	s.awaited = append(s.awaited, name)
	s.problem(Problem{
		State: Progressing, Kind: clusterv1alpha1.ResourceKindCluster, Name: name, Message: "registered " + ago(s.now, since) + ", never heard of",
		Next: "see that its agent runs beside it, and reaches the control plane: what flotilla-agent prints, or in the cluster: kubectl describe deployment karmada-agent -n karmada-system",
	})
}

// hold adds, once for all clusters that report it, that the control plane was set back
// and waits.
func hold(s *Survey, conditions []metav1.Condition) {
	held := apimeta.FindStatusCondition(conditions, clusterv1alpha1.ClusterConditionHeld)
	if s.held || held == nil || held.Status != metav1.ConditionTrue {
		return
	}
	s.held = true
	s.problem(Problem{State: Failed, Kind: controlPlaneKind, Name: "hub", Message: held.Message, Next: remark.ResumeNext})
}

// Policy adds a policy, after the clusters. It is shown only if it is not ready or has no
// effect.
func (s *Survey) Policy(p policyv1alpha1.Policy) {
	status := p.PropagationStatus()
	kind := "PropagationPolicy"
	if p.GetNamespace() == "" {
		kind = "ClusterPropagationPolicy"
	}
	ready := apimeta.FindStatusCondition(status.Conditions, policyv1alpha1.PolicyReady)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		if s.within == "" || p.GetNamespace() != "" { // a cluster-scoped one applies to other namespaces, too
			texts := remarks(s, p, propagation.NamedClusters(p.PropagationSpec()), propagation.ExcludedClusters(p.PropagationSpec()))
			if len(texts) > 0 && unmet.Misses(p, names(s)) {
				s.problem(Problem{State: Failed, Kind: kind, Namespace: p.GetNamespace(), Name: p.GetName(), Message: texts[0], Next: correctCluster})
				texts = texts[1:]
			}
			notes := idle(p, kind, texts, s.now)
			s.mistyped.policies.take(p, notes, len(s.fleet.Notes))
			if status.Templates > 0 {
				s.mistyped.partly = addNamer(s.mistyped.partly, namer{kind: kind, namespace: p.GetNamespace(), name: p.GetName()}, p.PropagationSpec().ResourceSelectors)
			}
			s.fleet.Notes = append(s.fleet.Notes, notes...)
		}
		s.problem(unbound(p, kind))
		if message := untaken(p); message != "" {
			s.problem(Problem{State: Failed, Kind: kind, Namespace: p.GetNamespace(), Name: p.GetName(), Message: message,
				Next: "put right what it says; it is tried again until it works: flotilla describe " + strings.ToLower(kind) + " " + p.GetName() + wording.InNamespace(p.GetNamespace())})
			if status.LastProblem != nil {
				s.untaken[status.LastProblem.Object] = true
			}
		}
		return
	}
	s.problem(Problem{State: Failed, Kind: kind, Namespace: p.GetNamespace(), Name: p.GetName(), Message: ready.Message,
		Next: "put right what it says: flotilla describe " + strings.ToLower(kind) + " " + p.GetName() + wording.InNamespace(p.GetNamespace())})
}

// Work adds a Work. It is shown if its cluster has yet to remove or apply something, if a user
// has to confirm something, or if it fails without a binding that reports it.
func (s *Survey) Work(w *workv1alpha1.Work) {
	blocked := apimeta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkDeletionBlocked)
	cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
	switch {
	case !ok:
		return
	case blocked != nil && blocked.Reason == workv1alpha1.WorkHoldsOthersReason:
	case w.DeletionTimestamp == nil:
		Unbound(s, w)
		s.owed.Arrives(w, cluster)
		return
	default:
		s.owed.Leaves(w, cluster, s.now)
		return
	}
	s.problem(Problem{State: Failed, Kind: workv1alpha1.ResourceKindWork, Namespace: w.Namespace, Name: w.Name, Clusters: []string{cluster}, Message: blocked.Message,
		Next: fmt.Sprintf("see that nobody misses it, then: flotilla kubectl annotate work -n %s %s %s=true", w.Namespace, w.Name, workv1alpha2.AllowCascadeAnnotation)})
}

// Fleet returns the result. The Survey must not be used afterwards.
func (s *Survey) Fleet() Fleet {
	leftovers(s)
	unfulfilled(s)
	s.fleet.Problems = append(s.fleet.Problems, append(outstanding(s), s.asides.stuck(s.fleet.Clusters)...)...)
	sorting.Objects(s.uncarried)
	victims, bound := slices.Concat(s.uncarried, s.asides.released), func(id inventory.ID) bool { return s.reach[id] != nil }
	there := slices.AppendSeq(slices.Clone(s.uncarried), maps.Keys(s.reach))
	sorting.Objects(there)
	s.mistyped.policies.hint(s.fleet.Notes, victims, there, bound)
	s.fleet.Notes = slices.Concat(slices.DeleteFunc(s.fleet.Notes, s.mistyped.denied), misnaming(s.mistyped.partly, victims, bound), misnaming(s.mistyped.overrides, there, bound),
		uncarried(s.uncarried), s.asides.notes())
	if len(s.fleet.Clusters) == 0 && s.within == "" && !s.blind {
		s.fleet.Notes = append(s.fleet.Notes, empty)
	}
	f := s.fleet
	f.uncarried = len(s.uncarried) > 0
	for i := range f.Kustomizations {
		owned := s.standing(i)
		if f.Kustomizations[i].Clusters = clustersOf(owned, s.reach, false); f.Kustomizations[i].Clusters.Total == 0 {
			f.Kustomizations[i].Clusters = clustersOf(owned, s.reach, true) // Namespaces count only if it has nothing else
		}
	}
	for i := range f.Clusters {
		if count := s.members[f.Clusters[i].Name]; count != nil {
			f.Clusters[i].Templates = *count
		}
		f.Clusters[i].emptying = s.owed.Removing(f.Clusters[i].Name)
	}
	follows := s.within == "" && len(s.silent) > 0 // what nothing is known of follows from the problem of a cluster
	f.Problems = slices.DeleteFunc(f.Problems, func(p Problem) bool { return p.State == Unknown && follows })
	for i := range f.Problems {
		switch p := &f.Problems[i]; {
		case p.Kind == clusterv1alpha1.ResourceKindCluster && p.State == Failed:
			if count := s.members[p.Name]; count != nil {
				p.Message += remark.Unheard(count.Unknown, following(s, p.Name), s.now.Sub(s.silent[p.Name].Since)) + s.asides.leaving.Text(p.Name)
			}
		case p.Kind == kustomizev1.KustomizationKind && p.State == Progressing:
			s.asides.waitsInVain(p, s.owned[slices.IndexFunc(s.fleet.Kustomizations, p.isAbout)])
		case p.Kind == kustomizev1.KustomizationKind && p.State == Failed:
			p.leaveTo(f.Kustomizations)
			p.Next = cmp.Or(s.retired(slices.IndexFunc(f.Kustomizations, p.isAbout), f.Kustomizations), p.Next)
		}
	}
	slices.SortFunc(f.Sources, func(a, b Source) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	slices.SortFunc(f.Kustomizations, func(a, b Kustomization) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(f.Clusters, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Problems, compareProblems)
	slices.SortStableFunc(f.Notes, func(a, b Note) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Message, b.Message))
	})
	slices.Sort(f.Unread)
	f.Ready = len(f.Problems)+len(f.Unjudged()) == 0
	return f
}

// following counts the Kustomizations of whose health in a cluster nothing is known.
func following(s *Survey, cluster string) (n int) {
	for i, owned := range s.owned {
		if s.fleet.Kustomizations[i].State == Unknown && slices.ContainsFunc(owned, func(id inventory.ID) bool { r := s.reach[id]; return r != nil && slices.Contains(r.clusters, cluster) }) {
			n++
		}
	}
	return n
}

// clustersOf counts the clusters of templates.
func clustersOf(ids []inventory.ID, reached map[inventory.ID]*reach, everywhere bool) Count {
	var all readiness.Clusters
	for _, id := range ids {
		if r := reached[id]; r != nil && r.everywhere == everywhere {
			all.Add(r.clusters, r.ready)
		}
	}
	ready, total := all.Count()
	return Count{Ready: ready, Total: total}
}

func (s *Survey) problem(p Problem) {
	if p.State == Failed || p.State == Progressing || p.State == Unknown && p.Kind == kustomizev1.KustomizationKind {
		s.fleet.Problems = append(s.fleet.Problems, p)
	}
}

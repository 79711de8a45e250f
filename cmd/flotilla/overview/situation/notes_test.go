package situation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

func member(name string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
	c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ClusterReady", Message: "fine"}}
	return c
}

// carrying returns a policy that is ready, with how many objects it selects.
func carrying(name string, templates int32, clusters ...string) *policyv1alpha1.PropagationPolicy {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Generation: 2, Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: name},
	}}
	if len(clusters) > 0 {
		p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}
	}
	p.Status.ObservedGeneration, p.Status.Templates = 2, templates
	p.Status.Conditions = []metav1.Condition{{Type: policyv1alpha1.PolicyReady, Status: metav1.ConditionTrue}}
	return p
}

func workload(namespace, name string) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	obj.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Deployment"))
	obj.APIVersion = "apps/v1"
	return obj
}

// TestNotes: a fleet without failures in which some objects are not selected by a policy.
func TestNotes(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	s.Policy(carrying("web", 1, "east"))
	s.Policy(carrying("half", 1, "wst", "east", "nrth"))
	s.Policy(carrying("typo", 0))
	unseen := carrying("unseen", 0)
	unseen.Generation = 3
	s.Policy(unseen)
	carried := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "needed-deployment"}}
	carried.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "web-deployment", Clusters: []workv1alpha2.TargetCluster{{Name: "east"}}}}
	carried.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy}}
	carried.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "needed"}
	s.Binding(carried, nil)
	fresh := carrying("fresh", 0) // nobody has counted yet
	fresh.CreationTimestamp = metav1.NewTime(now.Add(-9 * time.Second))
	s.Policy(fresh)
	released := carried.DeepCopy()
	released.Spec.RequiredBy, released.Spec.Resource.Name, released.Spec.Clusters = nil, "left", []workv1alpha2.TargetCluster{{Name: "east"}}
	s.Binding(released, nil)
	claimed := released.DeepCopy()
	claimed.Spec.Resource.Name = "kept"
	propagation.ClaimOf(carrying("web", 1)).Set(claimed)
	s.Binding(claimed, nil)
	for _, name := range []string{"changed", "removed"} {
		drifted := carried.DeepCopy()
		drifted.Spec.Resource.Name = name
		drifted.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Drifted, Status: metav1.ConditionTrue, Message: "east: spec.replicas changed by kubectl-edit"}}
		s.Binding(drifted, nil)
	}
	s.Workload(workload("shop", "needed"))
	waiting := workload("shop", "claimed")
	propagation.ClaimOf(carrying("web", 1)).Set(waiting)
	s.Workload(waiting)
	s.Workload(workload("kube-system", "ours"))
	for _, name := range []string{"alone", "b", "c", "d"} {
		s.Workload(workload("shop", name))
	}
	golden(t, "notes.txt", text(t, s.Fleet(), false))
}

// TestAnOverrideThatNamesAStranger: clusters that do not exist are reported for rules, and for the deprecated
// fields.
func TestAnOverrideThatNamesAStranger(t *testing.T) {
	named := func(names ...string) *policyv1alpha1.ClusterAffinity {
		return &policyv1alpha1.ClusterAffinity{ClusterNames: names}
	}
	rules := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "rules"}}
	rules.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{TargetCluster: named("wset", "east")}, {}, {TargetCluster: named("wset")}}
	old := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "old"}}
	old.Spec.TargetCluster = named("nowhere-at-all")
	right := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "right"}}
	right.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{TargetCluster: named("west", "soon")}}

	const next = "correct the name, or join the cluster: flotilla get clusters"
	of := situation.Note{Kind: "OverridePolicy", Namespace: "shop", Name: "rules", Message: "clusterNames names wset, which does not exist (did you mean west?)", Next: next}
	whole := situation.Note{Kind: "ClusterOverridePolicy", Name: "old", Message: "clusterNames names nowhere-at-all, which does not exist", Next: next}
	for within, want := range map[string][]situation.Note{"": {whole, of}, "shop": {of}} {
		s := situation.NewSurvey(now, within)
		s.Cluster(member("east"), time.Time{})
		s.Cluster(member("west"), time.Time{})
		s.Awaited("soon", now)
		s.Override(rules)
		s.Override(old)
		s.Override(right)
		if diff := cmp.Diff(want, s.Fleet().Notes); diff != "" {
			t.Errorf("within %q (-want +got):\n%s", within, diff)
		}
	}
}

// TestTemplatesWithoutABinding: they run nowhere, which only their policy's counts show.
func TestTemplatesWithoutABinding(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	p := carrying("all", 13, "east")
	p.Status.Bindings = 2
	p.Status.LastProblem = &policyv1alpha1.PolicyProblem{Object: "Role shop/a:b", Message: "the name of its binding is taken"}
	s.Policy(p)
	lazy := carrying("lazy", 3, "east") // they wait for their next change, and nothing is wrong
	s.Policy(lazy)
	want := []situation.Problem{{
		State: situation.Failed, Kind: "PropagationPolicy", Namespace: "shop", Name: "all",
		Message: "11 of its 13 templates have no binding, and run nowhere; the last problem is of Role shop/a:b: the name of its binding is taken",
		Next:    "flotilla explain KIND/NAME of each says why: flotilla describe propagationpolicy all -n shop",
	}}
	if diff := cmp.Diff(want, s.Fleet().Problems); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhatCouldNotBeTakenUp: an object that a policy could not claim is a problem of the policy, and not
// reported as selected by no policy.
func TestWhatCouldNotBeTakenUp(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	const fault = "it could not take up Deployment shop/web: read its replicas: webhook hook.example.io: connection refused"
	p := carrying("all", 0, "east")
	p.Status.Conditions[0].Reason, p.Status.Conditions[0].Message = policyv1alpha1.PolicyReasonNotTakenUp, fault
	p.Status.LastProblem = &policyv1alpha1.PolicyProblem{Object: "Deployment shop/web", Message: "read its replicas: webhook hook.example.io: connection refused"}
	s.Policy(p)
	s.Workload(workload("shop", "web"))
	s.Workload(workload("shop", "web-2"))
	f := s.Fleet()
	want := []situation.Problem{{
		State: situation.Failed, Kind: "PropagationPolicy", Namespace: "shop", Name: "all", Message: fault,
		Next: "put right what it says; it is tried again until it works: flotilla describe propagationpolicy all -n shop",
	}}
	if diff := cmp.Diff(want, f.Problems); diff != "" || f.Ready {
		t.Errorf("ready = %v, problems (-want +got):\n%s", f.Ready, diff)
	}
	notes := []situation.Note{{Kind: "Deployment", Namespace: "shop", Name: "web-2", Message: "no policy carries it, so that it runs nowhere", Next: "flotilla explain deployment/web-2 -n shop"}}
	if diff := cmp.Diff(notes, f.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestRightAfterAStart: the control plane has not compared its store with the clusters yet.
func TestRightAfterAStart(t *testing.T) {
	for name, tc := range map[string]struct {
		up   time.Duration
		age  time.Duration // of the cluster
		held bool          // it says that the control plane was set back
		next string        // of the note; empty for none
	}{
		"it was not looked at yet":         {4 * time.Second, time.Hour, false, "ask again in 41s"},
		"it was":                           {time.Minute, time.Hour, false, ""},
		"it was not there when it started": {4 * time.Second, 2 * time.Second, false, ""},
		"it is known that it was set back": {4 * time.Second, time.Hour, true, ""},
	} {
		s := situation.NewSurvey(now, "")
		east := member("east")
		east.CreationTimestamp = metav1.NewTime(now.Add(-tc.age))
		if tc.held {
			east.Status.Conditions = append(east.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionHeld, Status: metav1.ConditionTrue, Message: "set back"})
		}
		s.Cluster(east, time.Time{})
		s.Started(now.Add(-tc.up), now)
		next := ""
		for _, note := range s.Fleet().Notes {
			next += note.Next
		}
		if next != tc.next {
			t.Errorf("%s: %+v", name, s.Fleet().Notes)
		}
	}
}

// TestAnEmptyFleet: an empty fleet is reported with the first step, but not to tenants.
func TestAnEmptyFleet(t *testing.T) {
	awaited := situation.NewSurvey(now, "")
	awaited.Awaited("north", now.Add(-5*time.Minute))
	awaited.Policy(carrying("web", 1, "north"))
	golden(t, "awaited.txt", text(t, awaited.Fleet(), false))
	golden(t, "empty.txt", text(t, situation.NewSurvey(now, "").Fleet(), false))
	blind := situation.NewSurvey(now, "")
	blind.Unread(situation.Clusters)
	blind.Policy(carrying("web", 1, "east"))
	if diff := cmp.Diff([]situation.Note(nil), blind.Fleet().Notes); diff != "" {
		t.Errorf("who may not read clusters is told of them (-want +got):\n%s", diff)
	}
}

// TestAClaimThatNoPolicyCarries: a volume claim is reported along with workloads.
func TestAClaimThatNoPolicyCarries(t *testing.T) {
	claim := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}
	for name, tc := range map[string]struct {
		others []*metav1.PartialObjectMetadata
		want   situation.Note
	}{
		"it alone": {nil, situation.Note{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data",
			Message: "no policy carries it, so that no cluster has it", Next: "flotilla explain persistentvolumeclaim/data -n shop"}},
		"beside a workload": {[]*metav1.PartialObjectMetadata{workload("shop", "web")}, situation.Note{
			Message: "2 objects are carried by no policy, so that no cluster has them: Deployment shop/web, PersistentVolumeClaim shop/data", Next: "flotilla explain deployment/web -n shop"}},
	} {
		s := situation.NewSurvey(now, "")
		s.Cluster(member("east"), time.Time{})
		s.Workload(claim)
		for _, obj := range tc.others {
			s.Workload(obj)
		}
		if diff := cmp.Diff([]situation.Note{tc.want}, s.Fleet().Notes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

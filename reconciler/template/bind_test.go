package template

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/template/statistics"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// binderFor returns a binder that places on the clusters, and whose interpreter returns the replicas or the error.
func binderFor(replicas int32, err error, clusters ...string) binder {
	var members []*clusterv1alpha1.Cluster
	for _, name := range clusters {
		members = append(members, &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: clusterv1alpha1.ClusterStatus{APIEnablements: []clusterv1alpha1.APIEnablement{
				{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
			}},
		})
	}
	return binder{
		replicas: func(*unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, bool, error) {
			return replicas, nil, true, err
		},
		decide: func(_ context.Context, b workv1alpha2.Binding) (placement.Decision, bool, error) {
			decision, changed := placement.Decide(b, placement.Situation{Clusters: placement.NewSnapshot(members), Now: noon}, placement.Options{})
			return decision, changed, nil
		},
		newID: func() string { return "b-id" },
	}
}

func key() templatestore.Key {
	return templatestore.Key{GroupVersionKind: deployment, Namespace: "shop", Name: "web"}
}

func TestBindNew(t *testing.T) {
	p := policy("p", "apps/v1")
	p.SetAnnotations(map[string]string{gitopsv1alpha1.HoldsSecretsAnnotation: gitopsv1alpha1.HoldsInFields})
	claim := propagation.ClaimOf(p)
	s := state{key: key(), template: web(claim), policy: p}
	if _, err := binderFor(2, nil, "m1", "m2").run(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	digest, err := propagation.Digest(s.template)
	if err != nil {
		t.Fatal(err)
	}
	want := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-deployment",
			Labels: map[string]string{
				policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-p",
				workv1alpha2.ResourceBindingPermanentIDLabel:     "b-id",
			},
			Annotations: map[string]string{
				policyv1alpha1.PropagationPolicyNamespaceAnnotation: "shop",
				policyv1alpha1.PropagationPolicyNameAnnotation:      "p",
				propagation.DigestAnnotation:                        digest,
				policyv1alpha1.PolicyPlacementAnnotation:            "{}",
				gitopsv1alpha1.HoldsSecretsAnnotation:               gitopsv1alpha1.HoldsInFields,
				workv1alpha2.SchedulingDecisionAnnotation:           `{"reason":"Success","message":"Binding has been scheduled successfully.","at":"2026-01-02T12:00:00Z"}`,
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "t-1", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
			Finalizers: []string{workv1alpha2.BindingControllerFinalizer},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:           workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "t-1", ResourceVersion: "7"},
			Replicas:           2,
			Clusters:           []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 2}},
			Placement:          &policyv1alpha1.Placement{},
			SchedulerName:      policyv1alpha1.DefaultSchedulerName,
			ConflictResolution: policyv1alpha1.ConflictAbort,
		},
	}
	if diff := cmp.Diff(workv1alpha2.Binding(want), s.desired, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("binding (-want +got):\n%s", diff)
	}
}

// TestBindWhereItRan: a template that takes the name of one which a cluster that is not ready has yet to remove is placed
// there at once, and not once that is ready.
func TestBindWhereItRan(t *testing.T) {
	for name, tc := range map[string]struct {
		ran  []workv1alpha2.TargetCluster
		want []workv1alpha2.TargetCluster
		m2   bool // another cluster, which is ready and has the capacity that m1 does not report
	}{
		"it ran nowhere":         {},
		"it is to run elsewhere": {ran: []workv1alpha2.TargetCluster{{Name: "m1"}}, want: []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 2}}, m2: true},
		"it ran there":           {ran: []workv1alpha2.TargetCluster{{Name: "m1"}}, want: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy("p", "apps/v1")
			s := state{key: key(), template: web(propagation.ClaimOf(p)), policy: p}
			b := binderFor(2, nil, "m1")
			b.ran = func(context.Context, templatestore.Key, *policyv1alpha1.Placement) ([]workv1alpha2.TargetCluster, error) {
				return tc.ran, nil
			}
			unready := &clusterv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "m1"},
				Spec:       clusterv1alpha1.ClusterSpec{Taints: []corev1.Taint{{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoSchedule}}},
				Status: clusterv1alpha1.ClusterStatus{APIEnablements: []clusterv1alpha1.APIEnablement{
					{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
				}},
			}
			fleet := []*clusterv1alpha1.Cluster{unready}
			if tc.m2 {
				m2 := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m2"}, Status: *unready.Status.DeepCopy()}
				m2.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("9")}}
				fleet = append(fleet, m2)
				p.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
					ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
				}
			}
			b.decide = func(_ context.Context, bound workv1alpha2.Binding) (placement.Decision, bool, error) {
				decision, changed := placement.Decide(bound, placement.Situation{Clusters: placement.NewSnapshot(fleet), Now: noon}, placement.Options{})
				return decision, changed, nil
			}
			if _, err := b.run(t.Context(), &s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.desired.BindingSpec().Clusters); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			if tasks := s.desired.BindingSpec().GracefulEvictionTasks; len(tasks) > 0 {
				t.Errorf("it is kept where it is not: %+v", tasks)
			}
			if record, decided := placement.RecordOf(s.desired); !decided || record.Succeeded() != (len(tc.want) > 0) {
				t.Errorf("decided %v: %+v", decided, record)
			}
		})
	}
}

// TestBindAgain edits what a binding is made from and lists what changes on it.
func TestBindAgain(t *testing.T) {
	p := policy("p", "apps/v1")
	bound := func() *state {
		s := &state{key: key(), template: web(propagation.ClaimOf(p)), policy: p}
		if _, err := binderFor(2, nil, "m1", "m2").run(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return &state{key: s.key, template: s.template, policy: s.policy, binding: s.desired}
	}
	cases := map[string]struct {
		replicas int32
		clusters []string
		edit     func(s *state)
		want     func(spec *workv1alpha2.ResourceBindingSpec)
	}{
		"nothing": {replicas: 2, edit: func(*state) {}, want: func(*workv1alpha2.ResourceBindingSpec) {}},
		"its status only": {replicas: 2, edit: func(s *state) {
			s.template.Object["status"] = map[string]any{"replicas": int64(2)}
			s.template.SetResourceVersion("8")
		}, want: func(*workv1alpha2.ResourceBindingSpec) {}},
		"its content": {replicas: 2, edit: func(s *state) {
			s.template.Object["spec"] = map[string]any{"paused": true}
			s.template.SetResourceVersion("8")
		}, want: func(spec *workv1alpha2.ResourceBindingSpec) { spec.Resource.ResourceVersion = "8" }},
		"its replicas": {replicas: 3, edit: func(s *state) {
			s.template.Object["spec"] = map[string]any{"replicas": int64(3)}
			s.template.SetResourceVersion("8")
		}, want: func(spec *workv1alpha2.ResourceBindingSpec) {
			spec.Resource.ResourceVersion = "8"
			spec.Replicas, spec.Clusters[0].Replicas, spec.Clusters[1].Replicas = 3, 3, 3
		}},
		"the policy's placement": {replicas: 2, edit: func(s *state) {
			p := policy("p", "apps/v1")
			p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
			s.policy = p
		}, want: func(spec *workv1alpha2.ResourceBindingSpec) {
			spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
			spec.Clusters = spec.Clusters[1:]
			spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
				FromCluster: "m1", Replicas: ptr.To[int32](2), PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: workv1alpha2.EvictionReasonMoved,
				Message: "kept until m2 is healthy", Producer: workv1alpha2.EvictionProducerScheduler,
				CreationTimestamp: ptr.To(metav1.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)), ClustersBeforeFailover: []string{"m1", "m2"},
			}}
		}},
		"deleted and made again": {replicas: 2, edit: func(s *state) {
			s.template.SetUID("t-2")
			s.template.SetResourceVersion("9")
		}, want: func(spec *workv1alpha2.ResourceBindingSpec) {
			spec.Resource.UID, spec.Resource.ResourceVersion = "t-2", "9"
		}},
		"no policy any more": {replicas: 5, edit: func(s *state) {
			propagation.Unclaim(s.template)
			s.template.SetResourceVersion("8")
			s.policy = nil
		}, want: func(spec *workv1alpha2.ResourceBindingSpec) { spec.Resource.ResourceVersion = "8" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := bound()
			want := s.binding.BindingSpec().DeepCopy()
			tc.want(want)
			tc.edit(s)
			if _, err := binderFor(tc.replicas, nil, "m1", "m2").run(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, s.desired.BindingSpec(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if owner := metav1.GetControllerOf(s.desired); owner.UID != s.template.GetUID() {
				if s.policy != nil {
					t.Errorf("owner is %s, the template is %s", owner.UID, s.template.GetUID())
				}
			}
		})
	}
}

func TestBindUnreadableReplicas(t *testing.T) {
	p := policy("p", "apps/v1")
	s := state{key: key(), template: web(propagation.ClaimOf(p)), policy: p}
	_, err := binderFor(0, errors.New("spec.replicas is text")).run(t.Context(), &s)
	e := loop.As(err, "")
	if e == nil || e.Class != loop.ClassWaiting || e.After != time.Minute || e.Reason != workv1alpha2.EventReasonGetReplicasFailed {
		t.Errorf("err = %#v, want one that waits for an edit", e)
	}
}

func TestReadiness(t *testing.T) {
	skip, err := propagation.NewSkipRules(nil, "batch")
	if err != nil {
		t.Fatal(err)
	}
	broken := policy("p", "apps/v1")
	broken.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
	ranked := policy("p", "apps/v1")
	ranked.Spec.SchedulePriority = &policyv1alpha1.SchedulePriority{PriorityClassName: "high"}
	cases := map[string]struct {
		policy  policyv1alpha1.Policy
		missing []string
		noClass bool
		state   templatestore.State
		want    string // reason; "" if nothing is known
	}{
		"the kind is watched":               {policy: policy("p", "apps/v1"), state: templatestore.Synced, want: policyv1alpha1.PolicyReasonMatched},
		"the first list is under way":       {policy: policy("p", "apps/v1"), state: templatestore.Starting, want: policyv1alpha1.PolicyReasonMatched},
		"the kind was not looked up yet":    {policy: policy("p", "apps/v1"), state: templatestore.Unwanted},
		"the kind is not served":            {policy: policy("p", "apps/v1"), state: templatestore.Unserved, want: policyv1alpha1.PolicyReasonUnknownAPI},
		"overrides are missing":             {policy: policy("p", "apps/v1"), state: templatestore.Synced, missing: []string{"tag"}, want: policyv1alpha1.PolicyReasonWaitingForOverrides},
		"its PriorityClass is missing":      {policy: ranked, state: templatestore.Synced, noClass: true, want: policyv1alpha1.PolicyReasonUnknownPriorityClass},
		"the kind is never propagated":      {policy: policy("p", "batch/v1"), want: policyv1alpha1.PolicyReasonInvalidSelector},
		"the version cannot be read":        {policy: policy("p", "a/b/c"), want: policyv1alpha1.PolicyReasonInvalidSelector},
		"the label selector makes no sense": {policy: broken, state: templatestore.Synced, want: policyv1alpha1.PolicyReasonInvalidSelector},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, known := readiness(tc.policy, needs{overrides: tc.missing, noClass: tc.noClass}, skip, func(schema.GroupVersionKind) templatestore.State { return tc.state })
			if got.Reason != tc.want || known != (tc.want != "") {
				t.Errorf("readiness = %q (%s), known %v; want %q", got.Reason, got.Message, known, tc.want)
			}
			if want := metav1.ConditionStatus("True"); known && (got.Status == want) != (tc.want == policyv1alpha1.PolicyReasonMatched) {
				t.Errorf("status %s with reason %s", got.Status, got.Reason)
			}
		})
	}
}

func TestRemarks(t *testing.T) {
	able := metav1.Condition{Status: metav1.ConditionTrue, Reason: policyv1alpha1.PolicyReasonMatched, Message: "fine"}
	unable := metav1.Condition{Status: metav1.ConditionFalse, Reason: policyv1alpha1.PolicyReasonUnknownAPI, Message: "no such kind"}
	typo := []propagation.Stranger{{Name: "wst", Meant: "west"}}
	const idle = "it carries nothing: there is no object that its selectors mean, or another policy carries it"
	cases := map[string]struct {
		ready     metav1.Condition
		strangers []propagation.Stranger
		untaken   []statistics.Problem
		idle      bool
		misnamed  string
		want      [2]string // reason, message
	}{
		"it carries something":       {ready: able, want: [2]string{"Matched", "fine"}},
		"it carries nothing":         {ready: able, idle: true, want: [2]string{"NothingSelected", idle}},
		"it names an object wrongly": {ready: able, idle: true, misnamed: "it names Job a (did you mean Job b?)", want: [2]string{"NothingSelected", "it carries nothing: it names Job a (did you mean Job b?)"}},
		"it carries another one":     {ready: able, misnamed: "it names Job a (did you mean Job b?)", want: [2]string{"Matched", "fine"}},
		"it names a cluster wrongly": {ready: able, strangers: typo, want: [2]string{"UnknownCluster", "clusterNames names wst, which does not exist (did you mean west?)"}},
		"both":                       {ready: able, strangers: typo, idle: true, want: [2]string{"UnknownCluster", idle + "; clusterNames names wst, which does not exist (did you mean west?)"}},
		"it could not take up what it means": {ready: able, idle: true, untaken: []statistics.Problem{{Object: "Job shop/a", Message: "no"}},
			want: [2]string{"NotTakenUp", "it could not take up Job shop/a: no"}},
		"it could not take up several": {ready: able, strangers: typo, untaken: []statistics.Problem{{Object: "Job shop/a", Message: "no"}, {Object: "Job shop/b"}, {Object: "Job shop/c"}, {Object: "Job shop/d"}},
			want: [2]string{"NotTakenUp", "it could not take up Job shop/a: no; nor 3 more: Job shop/b, Job shop/c …; clusterNames names wst, which does not exist (did you mean west?)"}},
		"it cannot act, which is enough": {ready: unable, strangers: typo, idle: true, want: [2]string{"UnknownAPI", "no such kind"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := remarks(tc.ready, remark{strangers: tc.strangers, untaken: statistics.Naming(tc.untaken), idle: tc.idle, misnamed: tc.misnamed})
			if diff := cmp.Diff(tc.want, [2]string{got.Reason, got.Message}); diff != "" || got.Status != tc.ready.Status {
				t.Errorf("status %s (-want +got):\n%s", got.Status, diff)
			}
		})
	}
}

// The size of a template may be on its way: nothing is written or reported
// until it is known.
func TestBindAwaits(t *testing.T) {
	p := policy("p", "apps/v1")
	s := state{key: key(), template: web(propagation.ClaimOf(p)), policy: p}
	bind := binderFor(0, &interpreter.Error{Operation: "replicas", Kind: "Deployment", Name: "web", Err: &kinds.Pending{Of: "h", After: time.Second}}, "m1")
	next, err := bind.run(t.Context(), &s)
	if err != nil || next != (loop.Next{Done: true, After: time.Second}) || s.desired != nil || !s.awaits {
		t.Errorf("next = %+v, %v; desired %v, awaits = %v", next, err, s.desired, s.awaits)
	}
}

// TestBindReturns: a template that is in its revision again returns to all its clusters, with a policy or without.
func TestBindReturns(t *testing.T) {
	p := policy("p", "apps/v1")
	for name, carriedBy := range map[string]*policyv1alpha1.PropagationPolicy{"carried": p, "released": nil} {
		t.Run(name, func(t *testing.T) {
			s := &state{key: key(), template: web(propagation.ClaimOf(p)), policy: p}
			if _, err := binderFor(2, nil, "m1", "m2").run(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			again := &state{key: s.key, template: s.template, binding: s.desired.DeepCopyObject().(workv1alpha2.Binding)}
			if carriedBy != nil {
				again.policy = carriedBy
			}
			plan.SetPrunedFrom(again.binding, []string{"m1"})
			if _, err := binderFor(2, nil, "m1", "m2").run(t.Context(), again); err != nil {
				t.Fatal(err)
			}
			if again.desired == nil || len(plan.PrunedFrom(again.desired)) > 0 {
				t.Errorf("the binding is to be %+v", again.desired)
			}
			again.left, again.desired = true, nil // the Kustomization that it left is suspended
			if _, err := binderFor(2, nil, "m1", "m2").run(t.Context(), again); err != nil {
				t.Fatal(err)
			}
			if again.desired != nil && len(plan.PrunedFrom(again.desired)) == 0 {
				t.Error("it comes back although it left its revision")
			}
		})
	}
}

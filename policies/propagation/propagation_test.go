package propagation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

var (
	byName   = policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	byLabels = policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	byKind   = policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
)

// policy returns a policy, namespaced unless ns is empty. Its permanent id is its
// name.
func policy(ns, name string, s policyv1alpha1.ResourceSelector, edits ...func(policyv1alpha1.Policy)) policyv1alpha1.Policy {
	spec := policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{s}}
	meta := metav1.ObjectMeta{Namespace: ns, Name: name}
	var p policyv1alpha1.Policy = &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: meta, Spec: spec}
	label := policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel
	if ns != "" {
		p, label = &policyv1alpha1.PropagationPolicy{ObjectMeta: meta, Spec: spec}, policyv1alpha1.PropagationPolicyPermanentIDLabel
	}
	p.SetLabels(map[string]string{label: name})
	for _, e := range edits {
		e(p)
	}
	return p
}

func priority(n int32) func(policyv1alpha1.Policy) {
	return func(p policyv1alpha1.Policy) { p.PropagationSpec().Priority = &n }
}

func always(p policyv1alpha1.Policy) { p.PropagationSpec().Preemption = policyv1alpha1.PreemptAlways }

func deleting(p policyv1alpha1.Policy) { p.SetDeletionTimestamp(&metav1.Time{}) }

func web() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "shop", "name": "web", "labels": map[string]any{"app": "web"}, "uid": "u", "resourceVersion": "7"},
		"spec":     map[string]any{"replicas": int64(1)},
	}}
}

func TestClaim(t *testing.T) {
	obj := web()
	own, wide := policy("shop", "own", byKind), policy("", "wide", byKind)
	steps := []struct {
		claim  propagation.Claim
		change bool
		want   propagation.PolicyRef
		ok     bool
	}{
		{propagation.ClaimOf(wide), true, propagation.PolicyRef{Name: "wide", ID: "wide"}, true},
		{propagation.ClaimOf(wide), false, propagation.PolicyRef{Name: "wide", ID: "wide"}, true},
		{propagation.ClaimOf(own), true, propagation.PolicyRef{Namespace: "shop", Name: "own", ID: "own"}, true},
		{propagation.Claim{}, true, propagation.PolicyRef{}, false},
	}
	for i, s := range steps {
		if changed := s.claim.Set(obj); changed != s.change {
			t.Errorf("step %d: changed = %v", i, changed)
		}
		got, ok := propagation.Claimed(obj)
		if diff := cmp.Diff(s.want, got); diff != "" || ok != s.ok {
			t.Errorf("step %d: claimed = %v (-want +got):\n%s", i, ok, diff)
		}
	}
	if diff := cmp.Diff(map[string]string{"app": "web"}, obj.GetLabels()); diff != "" {
		t.Errorf("labels after all claims (-want +got):\n%s", diff)
	}
	if propagation.Unclaim(obj) {
		t.Error("nothing was left to unclaim")
	}
}

func TestPropagates(t *testing.T) {
	skip, err := propagation.NewSkipRules([]string{propagation.DefaultSkippedNamespaces}, "skipped.io; half.io/v1 ;some.io/v1/A,B;v1/Secret")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		r    selector.Resource
		want bool
	}{
		"a deployment":                             {selector.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop"}, true},
		"a cluster role":                           {selector.Resource{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, true},
		"our own kinds":                            {selector.Resource{APIVersion: "policy.karmada.io/v1alpha1", Kind: "PropagationPolicy", Namespace: "shop"}, false},
		"search is not among them":                 {selector.Resource{APIVersion: "search.karmada.io/v1alpha1", Kind: "X"}, true},
		"events":                                   {selector.Resource{APIVersion: "v1", Kind: "Event", Namespace: "shop"}, false},
		"leases":                                   {selector.Resource{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: "shop"}, false},
		"a system namespace":                       {selector.Resource{APIVersion: "v1", Kind: "ConfigMap", Namespace: "kube-system"}, false},
		"a namespace that only looks so":           {selector.Resource{APIVersion: "v1", Kind: "ConfigMap", Namespace: "my-kube-system"}, true},
		"an execution namespace":                   {selector.Resource{APIVersion: "v1", Kind: "ConfigMap", Namespace: "karmada-es-x"}, false},
		"the namespace of the members":             {selector.Resource{APIVersion: "v1", Kind: "ConfigMap", Namespace: "karmada-cluster"}, false},
		"a reserved namespace itself":              {selector.Resource{APIVersion: "v1", Kind: "Namespace", Name: "karmada-system"}, false},
		"a namespace is made everywhere by itself": {selector.Resource{APIVersion: "v1", Kind: "Namespace", Name: "shop"}, false},
		"one that asks not to be may be carried":   {selector.Resource{APIVersion: "v1", Kind: "Namespace", Name: "shop", Labels: map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "True"}}, true},
		"the hub's own certificate authority":      {selector.Resource{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "kube-root-ca.crt"}, false},
		"a skipped group":                          {selector.Resource{APIVersion: "skipped.io/v2", Kind: "X"}, false},
		"a skipped version":                        {selector.Resource{APIVersion: "half.io/v1", Kind: "X"}, false},
		"its other version":                        {selector.Resource{APIVersion: "half.io/v2", Kind: "X"}, true},
		"a skipped kind":                           {selector.Resource{APIVersion: "some.io/v1", Kind: "B"}, false},
		"its other kind":                           {selector.Resource{APIVersion: "some.io/v1", Kind: "C"}, true},
		"a skipped core kind":                      {selector.Resource{APIVersion: "v1", Kind: "Secret", Namespace: "shop"}, false},
		"an API version that makes no sense":       {selector.Resource{APIVersion: "a/b/c", Kind: "X"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := propagation.Propagates(tc.r, skip); got != tc.want {
				t.Errorf("propagates = %v, want %v", got, tc.want)
			}
		})
	}
	for _, bad := range [][2]string{{"(", ""}, {"a", "a/b/c/d"}} {
		if _, err := propagation.NewSkipRules([]string{bad[0]}, bad[1]); err == nil {
			t.Errorf("rules %q are accepted", bad)
		}
	}
}

func TestBindingSpec(t *testing.T) {
	full := func(p policyv1alpha1.Policy) {
		spec := p.PropagationSpec()
		spec.PropagateDeps = true
		spec.ConflictResolution, spec.Drift = policyv1alpha1.ConflictOverwrite, policyv1alpha1.DriftReport
		spec.PreserveResourcesOnDeletion = ptr.To(true)
		spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}
		spec.Suspension = &policyv1alpha1.Suspension{Dispatching: ptr.To(true)}
		spec.SchedulePriority = &policyv1alpha1.SchedulePriority{PriorityClassName: "high"}
	}
	ref := workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "7"}
	older := ref
	older.ResourceVersion = "5"
	kept := workv1alpha2.ResourceBindingSpec{
		Resource: older, Replicas: 9, PropagateDeps: true,
		Clusters:              []workv1alpha2.TargetCluster{{Name: "a", Replicas: 1}},
		GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "b"}},
		RequiredBy:            []workv1alpha2.BindingSnapshot{{Name: "x"}},
		RescheduleTriggeredAt: &metav1.Time{},
		Suspension:            &workv1alpha2.Suspension{Scheduling: ptr.To(true), Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(true)}},
		SchedulePriority:      &workv1alpha2.SchedulePriority{Priority: 3},
	}
	cases := map[string]struct {
		template propagation.Template
		policy   policyv1alpha1.Policy
		current  *workv1alpha2.ResourceBindingSpec
		want     workv1alpha2.ResourceBindingSpec
	}{
		"a new binding says what policy and template say": {
			template: propagation.Template{Replicas: 2, Priority: ptr.To[int32](7)},
			policy:   policy("shop", "p", byKind, full),
			want: workv1alpha2.ResourceBindingSpec{
				Resource: ref, Replicas: 2, PropagateDeps: true, SchedulerName: "default-scheduler",
				Placement:                   &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}},
				ConflictResolution:          policyv1alpha1.ConflictOverwrite,
				Drift:                       policyv1alpha1.DriftReport,
				PreserveResourcesOnDeletion: ptr.To(true),
				Suspension:                  &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(true)}},
				SchedulePriority:            &workv1alpha2.SchedulePriority{Priority: 7},
			},
		},
		"what others decided is kept, what the policy dropped is not": {
			template: propagation.Template{Replicas: 2, Digest: "new", Seen: "old"},
			policy:   policy("shop", "p", byKind),
			current:  &kept,
			want: workv1alpha2.ResourceBindingSpec{
				Resource: ref, Replicas: 2, SchedulerName: "default-scheduler", Placement: &policyv1alpha1.Placement{},
				ConflictResolution:    policyv1alpha1.ConflictAbort,
				Clusters:              kept.Clusters,
				GracefulEvictionTasks: kept.GracefulEvictionTasks,
				RequiredBy:            kept.RequiredBy,
				RescheduleTriggeredAt: kept.RescheduleTriggeredAt,
				Suspension:            &workv1alpha2.Suspension{Scheduling: ptr.To(true)},
			},
		},
		"its labels put it in groups, of either scope": {
			template: propagation.Template{},
			policy: policy("", "p", byKind, func(p policyv1alpha1.Policy) {
				p.PropagationSpec().Placement.WorkloadAffinity = &policyv1alpha1.WorkloadAffinity{
					Affinity:     &policyv1alpha1.WorkloadAffinityTerm{GroupByLabelKey: "app"},
					AntiAffinity: &policyv1alpha1.WorkloadAntiAffinityTerm{GroupByLabelKey: "missing"},
				}
			}),
			want: workv1alpha2.ResourceBindingSpec{
				Resource: ref, SchedulerName: "default-scheduler", ConflictResolution: policyv1alpha1.ConflictAbort,
				Placement: &policyv1alpha1.Placement{WorkloadAffinity: &policyv1alpha1.WorkloadAffinity{
					Affinity:     &policyv1alpha1.WorkloadAffinityTerm{GroupByLabelKey: "app"},
					AntiAffinity: &policyv1alpha1.WorkloadAntiAffinityTerm{GroupByLabelKey: "missing"},
				}},
				WorkloadAffinityGroups: &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "app=web"},
			},
		},
		"a template with parts has no replicas of its own": {
			template: propagation.Template{Replicas: 3, Requirements: &workv1alpha2.ReplicaRequirements{}, Components: []workv1alpha2.Component{{Name: "head", Replicas: 1}}},
			policy:   policy("shop", "p", byKind),
			current:  &workv1alpha2.ResourceBindingSpec{Replicas: 3, WorkloadAffinityGroups: &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "app=old"}},
			want: workv1alpha2.ResourceBindingSpec{
				Resource: ref, SchedulerName: "default-scheduler", ConflictResolution: policyv1alpha1.ConflictAbort, Placement: &policyv1alpha1.Placement{},
				Components: []workv1alpha2.Component{{Name: "head", Replicas: 1}},
			},
		},
		"a template whose digest was seen keeps the version that is recorded": {
			template: propagation.Template{Digest: "same", Seen: "same"},
			policy:   policy("", "p", byKind),
			current:  &workv1alpha2.ResourceBindingSpec{Resource: older},
			want: workv1alpha2.ResourceBindingSpec{
				Resource: older, SchedulerName: "default-scheduler", Placement: &policyv1alpha1.Placement{}, ConflictResolution: policyv1alpha1.ConflictAbort,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.template.Object = web()
			got := propagation.BindingSpec(tc.template, tc.policy, tc.current)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSameDecision(t *testing.T) {
	base := func() *workv1alpha2.ResourceBinding {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-deployment", Labels: map[string]string{"id": "p"},
			Annotations: map[string]string{propagation.DigestAnnotation: "old", policyv1alpha1.PropagationPolicyNameAnnotation: "p"},
		}}
		b.Spec.Resource = workv1alpha2.ObjectReference{Kind: "Deployment", Name: "web", UID: "u", ResourceVersion: "5"}
		b.Spec.Replicas = 2
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: 2}}
		return b
	}
	cases := map[string]struct {
		edit func(b *workv1alpha2.ResourceBinding)
		want bool
	}{
		"nothing": {func(*workv1alpha2.ResourceBinding) {}, true},
		"the version of the template": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Resource.ResourceVersion = "7"
			b.Annotations[propagation.DigestAnnotation] = "new"
		}, true},
		"a digest where there was none":   {func(b *workv1alpha2.ResourceBinding) { delete(b.Annotations, propagation.DigestAnnotation) }, true},
		"no list instead of an empty one": {func(b *workv1alpha2.ResourceBinding) { b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{} }, true},
		"the template itself":             {func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.UID = "v" }, false},
		"the version of its API":          {func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.APIVersion = "apps/v2" }, false},
		"replicas":                        {func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 3 }, false},
		"requirements": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{Namespace: "shop"}
		}, false},
		"components":    {func(b *workv1alpha2.ResourceBinding) { b.Spec.Components = []workv1alpha2.Component{{Name: "x"}} }, false},
		"the division":  {func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Replicas = 1 }, false},
		"the placement": {func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = &policyv1alpha1.Placement{} }, false},
		"suspension":    {func(b *workv1alpha2.ResourceBinding) { b.Spec.Suspension = &workv1alpha2.Suspension{} }, false},
		"the claim":     {func(b *workv1alpha2.ResourceBinding) { b.Labels["id"] = "q" }, false},
		"the claim's annotations": {func(b *workv1alpha2.ResourceBinding) {
			b.Annotations[policyv1alpha1.PropagationPolicyNameAnnotation] = "q"
		}, false},
		"the decision record": {func(b *workv1alpha2.ResourceBinding) { b.Annotations[workv1alpha2.SchedulingDecisionAnnotation] = "{}" }, false},
		"an owner":            {func(b *workv1alpha2.ResourceBinding) { b.OwnerReferences = []metav1.OwnerReference{{UID: "u"}} }, false},
		"a finalizer":         {func(b *workv1alpha2.ResourceBinding) { b.Finalizers = []string{"x"} }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := base(), base()
			tc.edit(b)
			kept := b.DeepCopy()
			if got := []bool{propagation.SameDecision(a, b), propagation.SameDecision(b, a)}; !cmp.Equal(got, []bool{tc.want, tc.want}) {
				t.Errorf("same, either way = %v, want %v", got, tc.want)
			}
			if diff := cmp.Diff(kept, b); diff != "" {
				t.Errorf("the binding was changed:\n%s", diff)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	digest := func(edit func(obj *unstructured.Unstructured)) string {
		obj := web()
		edit(obj)
		d, err := propagation.Digest(obj)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := digest(func(*unstructured.Unstructured) {})
	same := map[string]func(*unstructured.Unstructured){
		"its status":           func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"a": "b"} },
		"its resource version": func(o *unstructured.Unstructured) { o.SetResourceVersion("9") },
		"its owners":           func(o *unstructured.Unstructured) { o.SetOwnerReferences([]metav1.OwnerReference{{Name: "x"}}) },
		"its generation":       func(o *unstructured.Unstructured) { o.SetGeneration(9) },
	}
	for name, edit := range same {
		if digest(edit) != base {
			t.Errorf("%s changes the digest", name)
		}
	}
	other := map[string]func(*unstructured.Unstructured){
		"its labels": func(o *unstructured.Unstructured) { o.SetLabels(nil) },
		"its spec":   func(o *unstructured.Unstructured) { o.Object["spec"] = nil },
	}
	for name, edit := range other {
		if digest(edit) == base {
			t.Errorf("%s does not change the digest", name)
		}
	}
}

func TestMissingOverrides(t *testing.T) {
	p := policy("shop", "p", byKind, func(p policyv1alpha1.Policy) { p.PropagationSpec().DependentOverrides = []string{"b", "a", "c"} })
	got := propagation.MissingOverrides(p, func(ns, name string) bool { return ns == "shop" && name == "a" })
	if diff := cmp.Diff([]string{"b", "c"}, got); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

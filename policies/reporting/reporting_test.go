package reporting_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/reporting"
)

// brief is what an Event comes to: on what, and why.
func brief(events []reporting.Event) (out []string) {
	for _, n := range events {
		about := [...]string{"itself", "template", "both", "dependent " + n.Of.String()}[n.About]
		out = append(out, about+" "+strings.TrimPrefix(n.Type, corev1.EventTypeNormal)+n.Reason)
	}
	return out
}

const decided = `{"reason":"Success","message":"Placed.","at":"2026-01-01T00:00:00Z"}`

// web is the binding of a Deployment that a policy carries to two clusters.
func web(change func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-deployment", UID: "1",
			Labels:      map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"},
			Annotations: map[string]string{workv1alpha2.SchedulingDecisionAnnotation: decided},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "web", ResourceVersion: "7"},
			Replicas: 2,
			Clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 1}, {Name: "west", Replicas: 1}},
		},
	}
	if change != nil {
		change(b)
	}
	return b
}

func TestEventsOfBindings(t *testing.T) {
	for name, tc := range map[string]struct {
		before workv1alpha2.Binding
		after  workv1alpha2.Binding
		want   []string
	}{
		"a new one is built, claimed and placed": {
			after: web(nil), want: []string{"template ApplyPolicySucceed", "template GetReplicasSucceed", "both ScheduleBindingSucceed"},
		},
		"one that stays as it is": {before: web(nil), after: web(nil)},
		"one that is deleted": {
			before: web(nil),
			after:  web(func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp, b.Spec.Replicas = &metav1.Time{}, 9 }),
		},
		"another one of the name": {
			before: web(nil), after: web(func(b *workv1alpha2.ResourceBinding) { b.UID = "2" }),
			want: []string{"template ApplyPolicySucceed", "template GetReplicasSucceed", "both ScheduleBindingSucceed"},
		},
		"the template changed": {
			before: web(nil), after: web(func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.ResourceVersion = "8" }),
			want: []string{"template GetReplicasSucceed"},
		},
		"several components": {
			before: web(nil), after: web(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Components = []workv1alpha2.Component{{Name: "driver", Replicas: 1}}
			}),
			want: []string{"template GetComponentsSucceed"},
		},
		"a kind without replicas, without a policy": {
			after: web(func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas, b.Labels, b.Annotations = 0, nil, nil }),
		},
		"the same place once more": {
			before: web(nil), after: web(func(b *workv1alpha2.ResourceBinding) {
				b.Annotations[workv1alpha2.SchedulingDecisionAnnotation] = strings.Replace(decided, "00:00Z", "00:09Z", 1)
			}),
			want: []string{"both ScheduleBindingSucceed"},
		},
		"no place": {
			before: web(nil), after: web(func(b *workv1alpha2.ResourceBinding) {
				b.Annotations[workv1alpha2.SchedulingDecisionAnnotation] = `{"reason":"NoClusterFit","message":"None fits.","at":"2026-01-01T00:00:00Z"}`
			}),
			want: []string{"both WarningScheduleBindingFailed"},
		},
		"dependencies are read": {
			before: web(nil), after: web(func(b *workv1alpha2.ResourceBinding) {
				b.Annotations[workv1alpha2.BindingDependenciesAnnotationKey] = `[{"kind":"ConfigMap"}]`
			}),
			want: []string{"template GetDependenciesSucceed"},
		},
		"it follows those that need it": {
			before: web(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "a"}, {Namespace: "shop", Name: "b"}}
			}),
			after: web(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{
					{Namespace: "shop", Name: "a"}, {Namespace: "shop", Name: "b", Clusters: []workv1alpha2.TargetCluster{{Name: "east"}}},
				}
			}),
			want: []string{"dependent shop/b SyncScheduleResultToDependenciesSucceed"},
		},
		"an eviction ends": {
			before: web(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "north"}}
			}),
			after: web(nil), want: []string{"both EvictWorkloadFromClusterSucceed"},
		},
		"a cluster is taken back before it was left": {
			before: web(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "west"}}
			}),
			after: web(nil),
		},
		"an eviction begins": {
			before: web(nil), after: web(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "north"}}
			}),
		},
		"statuses are added up": {
			before: web(nil), after: web(func(b *workv1alpha2.ResourceBinding) {
				b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true}}
			}),
			want: []string{"both AggregateStatusSucceed"},
		},
		"no cluster has reported": {
			before: web(nil), after: web(func(b *workv1alpha2.ResourceBinding) {
				b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east"}}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, brief(reporting.Binding(tc.before, tc.after))); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// work is one that holds something.
func work(change func(*workv1alpha1.Work)) *workv1alpha1.Work {
	w := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "web-1", UID: "1", Generation: 1},
	}
	if change != nil {
		change(w)
	}
	return w
}

func condition(kind string, is metav1.ConditionStatus, generation int64) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) {
		w.Status.Conditions = []metav1.Condition{{Type: kind, Status: is, ObservedGeneration: generation}}
	}
}

func manifest(health workv1alpha1.ResourceHealth, status string) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) {
		m := workv1alpha1.ManifestStatus{Identifier: workv1alpha1.ResourceIdentifier{Name: "web"}, Health: health}
		if status != "" {
			m.Status = &runtime.RawExtension{Raw: []byte(status)}
		}
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{m}
	}
}

func TestEventsOfWorks(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after *workv1alpha1.Work
		want          []string
	}{
		"a new one": {after: work(nil), want: []string{"both SyncWorkSucceed"}},
		"a new one with overrides": {
			after: work(func(w *workv1alpha1.Work) {
				w.Annotations = map[string]string{policyv1alpha1.AppliedOverrides: `[{"policyName":"o"}]`}
			}),
			want: []string{"template ApplyOverridePolicySucceed", "both SyncWorkSucceed"},
		},
		"one that stays as it is": {before: work(nil), after: work(nil)},
		"another manifest":        {before: work(nil), after: work(func(w *workv1alpha1.Work) { w.Generation = 2 }), want: []string{"both SyncWorkSucceed"}},
		"one that is deleted": {
			before: work(nil), after: work(func(w *workv1alpha1.Work) { w.DeletionTimestamp, w.Generation = &metav1.Time{}, 2 }),
		},
		"dispatching as ever":        {before: work(nil), after: work(condition(workv1alpha1.WorkDispatching, metav1.ConditionTrue, 1))},
		"held back from the start":   {before: work(nil), after: work(condition(workv1alpha1.WorkDispatching, metav1.ConditionFalse, 1)), want: []string{"itself WorkDispatching"}},
		"no longer held back":        {before: work(condition(workv1alpha1.WorkDispatching, metav1.ConditionFalse, 1)), after: work(condition(workv1alpha1.WorkDispatching, metav1.ConditionTrue, 1)), want: []string{"itself WorkDispatching"}},
		"applied":                    {before: work(nil), after: work(condition(workv1alpha1.WorkApplied, metav1.ConditionTrue, 1)), want: []string{"itself SyncSucceed"}},
		"applied once more":          {before: work(condition(workv1alpha1.WorkApplied, metav1.ConditionTrue, 1)), after: work(condition(workv1alpha1.WorkApplied, metav1.ConditionTrue, 2)), want: []string{"itself SyncSucceed"}},
		"applied as before":          {before: work(condition(workv1alpha1.WorkApplied, metav1.ConditionTrue, 1)), after: work(condition(workv1alpha1.WorkApplied, metav1.ConditionTrue, 1))},
		"not applied":                {before: work(nil), after: work(condition(workv1alpha1.WorkApplied, metav1.ConditionFalse, 1))},
		"status and health":          {before: work(nil), after: work(manifest(workv1alpha1.ResourceUnhealthy, `{"a":1}`)), want: []string{"itself ReflectStatusSucceed", "itself InterpretHealthSucceed"}},
		"another status, as healthy": {before: work(manifest(workv1alpha1.ResourceHealthy, `{"a":1}`)), after: work(manifest(workv1alpha1.ResourceHealthy, `{"a":2}`)), want: []string{"itself ReflectStatusSucceed"}},
		"health alone":               {before: work(manifest(workv1alpha1.ResourceUnknown, "")), after: work(manifest(workv1alpha1.ResourceHealthy, "")), want: []string{"itself InterpretHealthSucceed"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, brief(reporting.Work(tc.before, tc.after))); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventsOfQuotas(t *testing.T) {
	quota := func(used string) *policyv1alpha1.FederatedResourceQuota {
		q := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
		if used != "" {
			q.Status.Overall = corev1.ResourceList{"cpu": resource.MustParse("8")}
			q.Status.OverallUsed = corev1.ResourceList{"cpu": resource.MustParse(used)}
		}
		return q
	}
	shared := func(used string) *policyv1alpha1.FederatedResourceQuota {
		q := quota("1")
		q.Status.AggregatedStatus = []policyv1alpha1.ClusterQuotaStatus{{ClusterName: "east", ResourceQuotaStatus: corev1.ResourceQuotaStatus{Used: corev1.ResourceList{"cpu": resource.MustParse(used)}}}}
		return q
	}
	for name, tc := range map[string]struct {
		before, after *policyv1alpha1.FederatedResourceQuota
		want          []string
	}{
		"a cluster says what it uses of its share": {before: quota("1"), after: shared("1"), want: []string{"itself AggregateStatusSucceed"}},
		"it says the same":                         {before: shared("1"), after: shared("1")},
		"it uses more of it":                       {before: shared("1"), after: shared("2"), want: []string{"itself AggregateStatusSucceed"}},
		"nothing is counted yet":                   {after: quota("")},
		"counted":                                  {before: quota(""), after: quota("1"), want: []string{"itself CollectOverallStatusSucceed"}},
		"the same":                                 {before: quota("1"), after: quota("1")},
		"more":                                     {before: quota("1"), after: quota("2"), want: []string{"itself CollectOverallStatusSucceed"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, brief(reporting.Quota(tc.before, tc.after))); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatAnEvictionEndsWith: clients look for the words of Karmada's controller.
func TestWhatAnEvictionEndsWith(t *testing.T) {
	events := reporting.Binding(web(func(b *workv1alpha2.ResourceBinding) {
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "north"}}
	}), web(nil))
	want := []reporting.Event{{About: reporting.Both, Type: "Normal", Reason: "EvictWorkloadFromClusterSucceed", Message: "Evict from cluster north succeed."}}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestAQuotasRefusal: clients look for the words of Karmada's webhook.
func TestAQuotasRefusal(t *testing.T) {
	events := reporting.Binding(web(nil), web(func(b *workv1alpha2.ResourceBinding) {
		b.Annotations[workv1alpha2.SchedulingDecisionAnnotation] = `{"reason":"QuotaExceeded","message":"cpu: 3 of 2","at":"2026-01-01T00:00:00Z"}`
	}))
	want := []reporting.Event{{
		About: reporting.Both, Type: "Warning", Reason: "ScheduleBindingFailed",
		Message: `admission webhook "resourcebinding.karmada.io" denied the request: cpu: 3 of 2`,
	}}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

package situation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

// TestOutstanding: a cluster that has yet to remove or to apply something is
// reported, although no binding shows it.
func TestOutstanding(t *testing.T) {
	held := func(name string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west", Name: name, Generation: 2}}
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"` + name + `"}}`),
		}}}
		return w
	}
	leaving := func(name string, ago time.Duration) *workv1alpha1.Work {
		w := held(name)
		w.DeletionTimestamp = &metav1.Time{Time: now.Add(-ago)}
		return w
	}
	kept := func(name, reason, message string) *workv1alpha1.Work {
		w := leaving(name, time.Minute)
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Reason: reason, Message: message}}
		return w
	}
	recalled := leaving("web", time.Minute)
	recalled.Annotations = map[string]string{workv1alpha2.WantedAgainAnnotation: workv1alpha2.WantedAgain}
	finalizer := kept("b", workv1alpha1.WorkTerminatingReason, "Deployment shop/b is being deleted in the cluster, kept by its finalizers: example.com/x")
	atOnce := kept("b", workv1alpha1.WorkTerminatingReason, "Deployment shop/b is being deleted in the cluster, kept by its finalizers: example.com/x")
	atOnce.DeletionTimestamp.Time = now.Add(-2 * time.Second)
	goes := kept("b", workv1alpha1.WorkTerminatingReason, "Namespace one is being deleted in the cluster and still there")
	atOnceGoes := goes.DeepCopy()
	atOnceGoes.DeletionTimestamp.Time = now.Add(-4 * time.Second)
	refused := kept("b", workv1alpha1.WorkDeletionFailedReason, "remove Deployment shop/b: no.example.com denied the request")
	const question = "the agent or the control plane was away before the copy here was removed, which stays until the control plane finds a healthy one where the template is placed"
	asks := kept("api", "LastCopy", question+" (asked at 2026-12-01T05:05:55.273479Z)")
	const none = "Deployment shop/api is healthy in none of the clusters that it is placed in (east): this cluster or the control plane was away before the copy here was removed, which stays until one is"
	lost := kept("api", "LastCopy", none)
	api := bindingOf("api")
	behind := held("web")
	behind.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	there := held("there")
	there.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: 2}}
	for name, tc := range map[string]struct {
		works  []*workv1alpha1.Work
		placed *workv1alpha2.ResourceBinding
		away   bool
		want   []string
	}{
		"what goes in a moment is no news":          {works: []*workv1alpha1.Work{leaving("web", 2*time.Second), there}},
		"what does not go":                          {works: []*workv1alpha1.Work{leaving("b", time.Minute), leaving("a", 20*time.Second)}, want: []string{"2 objects still to be removed there, asked for 60s ago: Deployment shop/a, Deployment shop/b; see what keeps it: flotilla get works -n karmada-es-west"}},
		"what a cluster that is away has":           {works: []*workv1alpha1.Work{leaving("web", time.Minute)}, away: true, want: []string{"1 object still to be removed there, asked for 60s ago: Deployment shop/web; it is done once the cluster is ready again"}},
		"what is to stay there after all":           {works: []*workv1alpha1.Work{recalled}, away: true},
		"what a finalizer keeps":                    {works: []*workv1alpha1.Work{leaving("a", time.Minute), finalizer}, want: []string{"2 objects still to be removed there, asked for 60s ago: Deployment shop/a, Deployment shop/b; Deployment shop/b is being deleted in the cluster, kept by its finalizers: example.com/x; put right in the cluster what keeps it: then it goes by itself"}},
		"one that a finalizer keeps":                {works: []*workv1alpha1.Work{finalizer}, want: []string{"1 object still to be removed there, asked for 60s ago: Deployment shop/b is being deleted in the cluster, kept by its finalizers: example.com/x; put right in the cluster what keeps it: then it goes by itself"}},
		"one that is known to be kept":              {works: []*workv1alpha1.Work{atOnce}, want: []string{"1 object still to be removed there, asked for 2s ago: Deployment shop/b is being deleted in the cluster, kept by its finalizers: example.com/x; put right in the cluster what keeps it: then it goes by itself"}},
		"one that takes its time":                   {works: []*workv1alpha1.Work{atOnceGoes}},
		"one that takes long, and nobody knows why": {works: []*workv1alpha1.Work{goes}, want: []string{"1 object still to be removed there, asked for 60s ago: Namespace one is being deleted in the cluster and still there; put right in the cluster what keeps it: then it goes by itself"}},
		"what the cluster refuses":                  {works: []*workv1alpha1.Work{refused}, want: []string{"1 object still to be removed there, asked for 60s ago: remove Deployment shop/b: no.example.com denied the request; put right in the cluster what keeps it: then it goes by itself"}},
		"a copy that may be the last one":           {works: []*workv1alpha1.Work{asks}, placed: api, want: []string{"1 object still to be removed there, asked for 60s ago: " + none + "; flotilla explain deployment/api -n shop"}},
		"one whose others are not known":            {works: []*workv1alpha1.Work{asks}, want: []string{"1 object still to be removed there, asked for 60s ago: " + question + "; flotilla explain deployment/api -n shop"}},
		"one of a cluster in push mode":             {works: []*workv1alpha1.Work{lost}, want: []string{"1 object still to be removed there, asked for 60s ago: " + none + "; flotilla explain deployment/api -n shop"}},
		"a version that has yet to arrive":          {works: []*workv1alpha1.Work{behind, there}, want: []string{"1 object not known to be there in the latest version: Deployment shop/web; see what keeps it: flotilla get works -n karmada-es-west"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			west := member("west")
			if tc.away {
				west.Status.Conditions[0].Status, west.Status.Conditions[0].Reason = metav1.ConditionFalse, "ClusterNotReachable"
			}
			s.Cluster(west, time.Time{})
			for _, w := range tc.works {
				s.Work(w)
			}
			if tc.placed != nil {
				s.Binding(tc.placed, nil)
			}
			var got []string
			for _, p := range s.Fleet().Problems {
				if p.State == situation.Progressing && p.Kind == "Cluster" {
					got = append(got, p.Message+"; "+p.Next)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNamespacesThatDoNotGo: a namespace whose deletion hangs is reported with what blocks it.
func TestNamespacesThatDoNotGo(t *testing.T) {
	for name, tc := range map[string]struct {
		asked time.Duration // how long ago; zero for never
		says  []corev1.NamespaceCondition
		want  []situation.Problem
	}{
		"one that stays":                 {},
		"one that goes in a moment":      {asked: 2 * time.Second},
		"one that has not said anything": {asked: time.Minute, want: []situation.Problem{{State: situation.Progressing, Kind: "Namespace", Name: "shop", Message: "being deleted for 60s, and not gone", Next: "free or delete what is left in it: then it goes by itself"}}},
		"one that something keeps": {asked: time.Minute, says: []corev1.NamespaceCondition{
			{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionFalse, Message: "all is well"},
			{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "Failed to delete all resource types, 1 remaining: protected"},
			{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "Some resources are remaining: deployments.apps has 1 resource instances"},
		}, want: []situation.Problem{{State: situation.Progressing, Kind: "Namespace", Name: "shop",
			Message: "being deleted for 60s, and not gone: protected; Some resources are remaining: deployments.apps has 1 resource instances", Next: "free or delete what is left in it: then it goes by itself"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
			if tc.asked > 0 {
				ns.DeletionTimestamp = &metav1.Time{Time: now.Add(-tc.asked)}
			}
			ns.Status.Conditions = tc.says
			s.Namespace(ns)
			if diff := cmp.Diff(tc.want, s.Fleet().Problems, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

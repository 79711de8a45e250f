package overview

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/lineage"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestMessagesAboutClusters: what was reported by one of which nothing is heard any more is not
// known, and where Works may not be read it is what the binding says.
func TestMessagesAboutClusters(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{
		Spec: workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "north"}, {Name: "south"}, {Name: "west"}}},
		Status: workv1alpha2.ResourceBindingStatus{AggregatedStatus: []workv1alpha2.AggregatedStatusItem{
			{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy},
			{ClusterName: "north", AppliedMessage: "no room"},
			{ClusterName: "west", Applied: true, Health: workv1alpha2.ResourceHealthy},
		}},
	}
	silent := rollup.Silences{"west": {Cause: "unreachable", Since: time.Unix(0, 0)}}
	applied := func(works []*workv1alpha1.Work) map[string]string {
		got := map[string]string{}
		for _, d := range deliveriesOf(&unstructured.Unstructured{Object: map[string]any{}}, b, works, silent) {
			got[d.Cluster] = d.Applied + " " + d.Health
		}
		return got
	}
	want := map[string]string{"east": "yes Healthy", "north": "no ", "south": "not known ", "west": "not known Unknown"}
	if diff := cmp.Diff(want, applied(nil)); diff != "" {
		t.Errorf("to who may not read Works (-want +got):\n%s", diff)
	}
	var works []*workv1alpha1.Work
	for _, cluster := range []string{"east", "west"} {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: "web"}}
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha2.ResourceHealthy}}
		works = append(works, w)
	}
	want = map[string]string{"east": "yes Healthy", "north": "not yet ", "south": "not yet ", "west": "not known Unknown"}
	if diff := cmp.Diff(want, applied(works)); diff != "" {
		t.Errorf("by Works (-want +got):\n%s", diff)
	}
	works[0].Status.ManifestStatuses = nil
	works[0].Status.Conditions = append(works[0].Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkDrifted, Status: metav1.ConditionTrue, Message: "Deployment shop/web was removed"})
	removed := deliveriesOf(&unstructured.Unstructured{Object: map[string]any{}}, b, works, silent)[0]
	if want := "differs from what was applied, and is left so: Deployment shop/web was removed"; removed.Message != want {
		t.Errorf("what was removed and is left so: %q, want %q", removed.Message, want)
	}
}

// TestTreesByHearsay: where the clusters may not be read, the count is what they reported last.
func TestTreesByHearsay(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}},
		},
		Status: workv1alpha2.ResourceBindingStatus{AggregatedStatus: []workv1alpha2.AggregatedStatusItem{
			{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy},
		}},
	}
	propagation.ClaimOf(&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "7a2d"},
	}}).Set(b)
	for name, tc := range map[string]struct {
		silent rollup.Silences
		want   string
	}{
		"clusters that were read":       {rollup.Silences{}, "1/2 clusters: west: not sent yet"},
		"clusters that may not be read": {nil, "1/2 clusters, as the clusters reported last: west: not sent yet"},
	} {
		var node lineage.Node
		grown(&node, rollup.PartOf(nil, b, nil, tc.silent), b, nil, tc.silent)
		if node.Text != tc.want {
			t.Errorf("%s: %q, want %q", name, node.Text, tc.want)
		}
	}
}

// TestKeptElsewhere tells a copy that waits for its replacement from one that is
// being removed.
func TestKeptElsewhere(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{
		Clusters:              []workv1alpha2.TargetCluster{{Name: "west"}},
		GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "east", Producer: workv1alpha2.EvictionProducerScheduler, ClustersBeforeFailover: []string{"east"}}},
	}}
	var works []*workv1alpha1.Work
	silent := rollup.Silences{"south": rollup.Silence{}}
	for _, cluster := range []string{"east", "north", "south", "west"} {
		works = append(works, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: "web"}})
	}
	got := map[string]string{}
	for _, d := range deliveriesOf(&unstructured.Unstructured{Object: map[string]any{}}, b, works, silent) {
		got[d.Cluster] = d.Message
	}
	want := map[string]string{"east": "kept until west is healthy", "north": "it is being taken out of this cluster", "south": silent["south"].String() + "; it is to be taken out of this cluster once that is ready again", "west": "not applied yet"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhatIsNotPlacedAsItIsWanted: a cluster that runs the version before has not applied what
// the template says, whatever became of that version, and the tree does not count it as ready.
func TestWhatIsNotPlacedAsItIsWanted(t *testing.T) {
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"}}}
	claim := propagation.ClaimOf(&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "7a2d"},
	}})
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("east"), Name: "web", Generation: 1}}
	w.Annotations = map[string]string{propagation.DigestAnnotation: "before"}
	w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha2.ResourceHealthy}}
	const released = "no policy carries it any more: its latest version stays on the control plane"
	type report struct {
		Applied, Message string
		State            situation.State
		Tree             string
	}
	for name, tc := range map[string]struct {
		claimed bool
		works   []*workv1alpha1.Work
		want    report
	}{
		"its policy went":                  {false, []*workv1alpha1.Work{w}, report{"no", "the version before runs there", situation.Progressing, "Progressing " + released}},
		"its policy has yet to take it up": {true, []*workv1alpha1.Work{w}, report{"not yet", "the version before runs there", situation.Progressing, "Progressing waits to be taken up by its policy"}},
		"an override does not fit":         {true, []*workv1alpha1.Work{}, report{"no", "override policy shop/x: no", situation.Failed, "Failed 0/1 clusters, as the clusters reported last: east: override policy shop/x: no"}},
		"its policy went, by hearsay":      {false, nil, report{"not known", "", situation.Progressing, "Progressing " + released}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", Annotations: map[string]string{propagation.DigestAnnotation: "before"}}}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy}}
			if tc.claimed {
				claim.Set(b)
			}
			if strings.Contains(tc.want.Message, "override") {
				delete(b.Annotations, propagation.DigestAnnotation)
				b.Annotations[propagation.ClusterFaultsAnnotation] = propagation.ClusterFaults{"east": tc.want.Message}.Text()
			}
			d := deliveriesOf(template, b, tc.works, nil)[0]
			var node lineage.Node
			grown(&node, rollup.PartOf(template, b, tc.works, nil), b, nil, nil)
			got := report{d.Applied, d.Message, d.State, string(node.State) + " " + node.Text}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTreesOfReleasedTemplates: what runs on without a policy says so, also where nobody edited it
// yet.
func TestTreesOfReleasedTemplates(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "a"}, {Name: "b"}, {Name: "c"}}}}
	for _, c := range []string{"a", "b", "c"} {
		b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: c, Applied: true, Health: workv1alpha2.ResourceHealthy})
	}
	text := func() string {
		var node lineage.Node
		grown(&node, rollup.PartOf(nil, b, nil, nil), b, nil, rollup.Silences{})
		return string(node.State) + " " + node.Text
	}
	if got, want := text(), "Ready 3/3 clusters: no policy carries it: its edits stay on the control plane"; got != want {
		t.Errorf("the tree says %q, want %q", got, want)
	}
	b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "other"}}
	b.Status.AggregatedStatus[1].Health, b.Status.AggregatedStatus[2].Health = workv1alpha2.ResourceUnhealthy, workv1alpha2.ResourceUnhealthy
	if got, want := text(), "Progressing 1/3 clusters: b, c: not ready"; got != want {
		t.Errorf("the tree says %q, want %q", got, want)
	}
}

package draining_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/draining"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/policies/estimate/profile"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestADryRunCountsNodes as the drain does: of a cluster in push mode itself, and of another what its agent tells. Of one that
// cannot be asked what it reports counts, and that is reported.
func TestADryRunCountsNodes(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	half := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourcePods: resource.MustParse("10")}
	node := func(name string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: half}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old"}, Spec: corev1.PodSpec{
		NodeName:   "a",
		Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}}}},
	}}
	index := &nodes.Index{}
	index.Node("a", &nodes.Node{Name: "a", Allocatable: nodes.AmountsOf(half)})
	encoded := profile.Of(index).Encode()
	agents := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("west"), Name: clusterv1alpha1.NodeProfileName},
		Data:       map[string]string{clusterv1alpha1.NodeProfileKey: string(encoded)},
	}
	member := func(objects ...client.Object) draining.Members {
		return func(string) (kubernetes.Interface, error) {
			out := kubefake.NewClientset()
			for _, o := range objects {
				if err := out.Tracker().Add(o); err != nil {
					return nil, err
				}
			}
			return out, nil
		}
	}
	refused := func(string) (kubernetes.Interface, error) { return nil, errors.New("nodes is forbidden") }
	hangs := func(string) (kubernetes.Interface, error) {
		return nil, &url.Error{Op: "Get", URL: "https://hub/proxy", Err: context.DeadlineExceeded}
	}
	for name, tc := range map[string]struct {
		mode         clusterv1alpha1.ClusterSyncMode
		members      draining.Members
		agentReports bool
		want         drain.State
		notes        []string
	}{
		"its nodes have room":             {mode: clusterv1alpha1.Push, members: member(node("a"), node("b")), want: drain.Leaves},
		"what runs there takes of it":     {mode: clusterv1alpha1.Push, members: member(node("a"), node("b"), pod), want: drain.Refused},
		"its agent tells of one node":     {mode: clusterv1alpha1.Pull, members: refused, agentReports: true, want: drain.Refused},
		"its agent tells nothing":         {mode: clusterv1alpha1.Pull, members: refused, want: drain.Leaves, notes: []string{`what fits in cluster west is counted by what it reports, and not by its nodes as the drain counts: read what its agent tells of its nodes: configmaps "node-profile" not found`}},
		"it hangs":                        {mode: clusterv1alpha1.Push, members: hangs, want: drain.Leaves, notes: []string{"what fits in cluster west is counted by what it reports, and not by its nodes as the drain counts: it does not answer"}},
		"the caller may not list a thing": {mode: clusterv1alpha1.Push, members: refused, want: drain.Leaves, notes: []string{"what fits in cluster west is counted by what it reports, and not by its nodes as the drain counts: nodes is forbidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{running(noon)}
			for _, name := range []string{"east", "west"} {
				c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: tc.mode}}
				c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)}}
				c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
				c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
					corev1.ResourcePods: resource.MustParse("100"), corev1.ResourceCPU: resource.MustParse("100"),
				}}
				objects = append(objects, c)
			}
			if tc.agentReports {
				objects = append(objects, agents)
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
			got, err := draining.Plan(t.Context(), hub, func(cluster string) (kubernetes.Interface, error) {
				if cluster == "east" {
					return kubefake.NewClientset(), nil
				}
				return tc.members(cluster)
			}, "east", noon)
			if err != nil {
				t.Fatal(err)
			}
			notes := got.Notes
			if tc.mode == clusterv1alpha1.Pull { // east has told nothing either
				notes = notes[1:]
			}
			if len(got.Rows) != 1 || got.Rows[0].State != tc.want {
				t.Errorf("rows %+v, want one that %s", got.Rows, tc.want)
			}
			if diff := cmp.Diff(append([]string{}, tc.notes...), append([]string{}, notes...)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// running is a Deployment of two replicas in east that may run in west, and needs 400m each.
func running(now time.Time) *workv1alpha2.ResourceBinding {
	divided := policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
	}}
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-deployment", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"},
	}}
	b.Spec = workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, Replicas: 2, Placement: &divided,
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("400m")}},
	}
	placement.Decision{
		Clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 2}}, AppliedPlacement: placement.AppliedPlacement(&divided),
		Record: placement.Record{Reason: workv1alpha2.BindingReasonSuccess, At: metav1.NewTime(now.Add(-time.Hour))},
	}.Put(b)
	return b
}

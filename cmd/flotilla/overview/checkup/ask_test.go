package checkup_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/checkup"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/offspring"
	"github.com/flotilla-io/flotilla/policies/symptom"
)

// warning is an Event about an object in namespace shop.
func warning(kind, name, reason, message string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: name + "." + reason},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Type: corev1.EventTypeWarning, Reason: reason, Message: message,
	}
}

// TestAsk: what a cluster says of a workload's Pods, or of why it has none.
func TestAsk(t *testing.T) {
	replicas := &appsv1.ReplicaSet{ObjectMeta: owned("web-1", "Deployment", "web")}
	pod := func(name, owner string, status corev1.PodStatus) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: owned(name, "ReplicaSet", owner), Status: status}
	}
	pulling := corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"}},
	}}}
	cases := map[string]struct {
		kind  string // empty: Deployment
		there []runtime.Object
		deny  string // the resource that may not be listed
		want  symptom.Symptom
		err   bool
	}{
		"its Pods say why": {
			there: []runtime.Object{replicas, pod("web-1-a", "web-1", pulling), warning("Pod", "web-1-a", "Failed", "later")},
			want:  symptom.Symptom{Reason: "ErrImagePull", Text: "ErrImagePull: no such image (1 of 1 Pod)"},
		},
		"those of a ReplicationController do, too": {
			kind: "ReplicationController", there: []runtime.Object{&corev1.Pod{ObjectMeta: owned("web-a", "ReplicationController", "web"), Status: pulling}},
			want: symptom.Symptom{Reason: "ErrImagePull", Text: "ErrImagePull: no such image (1 of 1 Pod)"},
		},
		"another workload's Pods do not count": {there: []runtime.Object{replicas, pod("api-1-a", "api-1", pulling), warning("Pod", "api-1-a", "Failed", "not ours")}},
		"it has no Pods, and an Event says why": {
			there: []runtime.Object{replicas, warning("ReplicaSet", "web-1", "FailedCreate", "exceeded quota: small")},
			want:  symptom.Symptom{Reason: "FailedCreate", Text: "FailedCreate: exceeded quota: small"},
		},
		"Pods may not be listed":                        {there: []runtime.Object{replicas}, deny: "pods", err: true},
		"Events may not be listed, which is not needed": {there: []runtime.Object{replicas}, deny: "events"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := kubefake.NewClientset(tc.there...)
			set.PrependReactor("list", tc.deny, func(clienttesting.Action) (bool, runtime.Object, error) {
				return tc.deny != "", nil, apierrors.NewForbidden(schema.GroupResource{Resource: tc.deny}, "", errors.New("no"))
			})
			kind := "Deployment"
			if tc.kind != "" {
				kind = tc.kind
			}
			got, err := checkup.Ask(t.Context(), offspring.In(set, "shop"), "east", kind, "web")
			if diff := cmp.Diff(tc.want, got); diff != "" || fleet.Denied(err) != tc.err {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/symptom"
)

// belongs is metadata of an object in namespace shop that another one owns.
func belongs(name, kind, owner string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner}}}
}

// warning is an Event about an object in namespace shop.
func warning(kind, name, reason, message string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: name + "." + reason},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Type: corev1.EventTypeWarning, Reason: reason, Message: message,
	}
}

// TestSymptom: what a cluster says of a workload's Pods, or of why it has none.
func TestSymptom(t *testing.T) {
	replicas := &appsv1.ReplicaSet{ObjectMeta: belongs("web-1", "Deployment", "web")}
	pod := func(name, owner string, status corev1.PodStatus) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: belongs(name, "ReplicaSet", owner), Status: status}
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
			kind: "ReplicationController", there: []runtime.Object{&corev1.Pod{ObjectMeta: belongs("web-a", "ReplicationController", "web"), Status: pulling}},
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
			web := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"namespace": "shop", "name": "web"}}}
			got, err := ask(t.Context(), set, "east", web)
			if diff := cmp.Diff(tc.want, got); diff != "" || fleet.Denied(err) != tc.err {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestExamineDenied: who may not reach a member is told so, and nothing fails.
func TestExamineDenied(t *testing.T) {
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		code := http.StatusForbidden
		if strings.Contains(req.URL.Path, "/clusters/west/") {
			code = http.StatusServiceUnavailable
		}
		w.WriteHeader(code)
		name := map[bool]string{true: "west", false: "east"}[code == http.StatusServiceUnavailable]
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not ` + name + `","code":` + map[int]string{403: "403", 503: "503"}[code] +
			`,"details":{"group":"cluster.karmada.io","kind":"clusters","name":"` + name + `"}}`))
	}))
	defer hub.Close()
	yes := true
	e := explain.Explanation{Delivery: &explain.Delivery{Clusters: []explain.Delivered{
		{Cluster: "east", Applied: &yes, Health: "Unhealthy"}, {Cluster: "west", Applied: &yes, Health: "Unhealthy"},
		{Cluster: "well", Applied: &yes, Health: "Healthy"}, {Cluster: "silent", Applied: &yes, Health: "Unhealthy", Silent: "unreachable for 3m"},
	}}}
	f := &explainFlags{hub: &fleet.Flags{Kubeconfig: commandtest.Kubeconfig(t, hub.URL, "")}}
	web := &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"}}}
	want := map[string]symptom.Symptom{
		"east": {Unread: "you may not read its Pods there", Denied: true},
		"west": {Unread: "the cluster was not asked: not west: flotilla describe cluster west says how it is"},
	}
	if diff := cmp.Diff(want, f.examine(t.Context(), io.Discard, e, web)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

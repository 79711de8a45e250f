package checkup_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/checkup"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

// owned is metadata of an object in namespace shop that another one owns.
func owned(name, kind, owner string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner}}}
}

// ailing are a control plane and three members behind it: east cannot pull an image for web and
// lets no Pod of full in, west
// may not be read, and mars never answers. It counts requests by their path.
func ailing(t *testing.T) (url string, requests func() map[string]int) {
	t.Helper()
	var mu sync.Mutex
	count := map[string]int{}
	sets := appsv1.ReplicaSetList{Items: []appsv1.ReplicaSet{{ObjectMeta: owned("web-1", "Deployment", "web")}, {ObjectMeta: owned("api-1", "Deployment", "api")}, {ObjectMeta: owned("full-1", "Deployment", "full")}}}
	events := corev1.EventList{Items: []corev1.Event{{
		Type: corev1.EventTypeWarning, Reason: "FailedCreate", Message: "exceeded quota: small",
		InvolvedObject: corev1.ObjectReference{Kind: "ReplicaSet", Namespace: "shop", Name: "full-1"},
	}}}
	pods := corev1.PodList{Items: []corev1.Pod{
		{ObjectMeta: owned("web-1-a", "ReplicaSet", "web-1"), Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"}},
		}}}},
		{ObjectMeta: owned("api-1-a", "ReplicaSet", "api-1"), Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no node has room",
		}}}},
	}}
	ended := make(chan struct{})
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		count[r.URL.Path]++
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, rest, _ := strings.Cut(r.URL.Path, "/clusters/")
		switch cluster, path, _ := strings.Cut(rest, "/proxy"); {
		case cluster == "mars":
			select {
			case <-r.Context().Done():
			case <-ended:
			}
		case cluster != "east":
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
		case strings.HasSuffix(path, "/events"):
			_ = json.NewEncoder(w).Encode(events)
		case strings.HasSuffix(path, "/replicasets"):
			_ = json.NewEncoder(w).Encode(sets)
		default:
			_ = json.NewEncoder(w).Encode(pods)
		}
	}))
	t.Cleanup(hub.Close)
	t.Cleanup(func() { close(ended) })
	return hub.URL, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

// TestExamine: what the Pods of clusters tell is added to what is shown; a cluster that cannot be
// asked changes nothing, and costs seconds at the most.
func TestExamine(t *testing.T) {
	url, requests := ailing(t)
	f := &fleet.Flags{Kubeconfig: commandtest.Kubeconfig(t, url, "")}
	problem := func(kind, name, symptom string, clusters ...string) situation.Problem {
		return situation.Problem{Kind: kind, Namespace: "shop", Name: name, Clusters: clusters, Message: "not ready 0/1", Symptom: symptom}
	}
	found := func(web, api, far, many string) situation.Fleet {
		return situation.Fleet{Problems: []situation.Problem{
			problem("Deployment", "web", web, "east"), problem("Deployment", "api", api, "east", "west"), problem("Deployment", "far", far, "mars"),
			problem("Deployment", "closed", "", "west"), problem("ConfigMap", "settings", "", "east"), problem("Deployment", "nowhere", ""),
			problem("Deployment", "web", many, "east", "mars", "north", "south"), problem("Deployment", "full", "FailedCreate: exceeded quota: small", "east"),
		}}
	}
	got := found("", "", "", "")
	got.Problems[len(got.Problems)-1].Symptom = ""
	begin := time.Now()
	checkup.Examine(t.Context(), f, &got)
	if took := time.Since(begin); took > 3*checkup.Timeout {
		t.Errorf("it took %s", took)
	}
	far := "see whether it is up: flotilla describe cluster mars"
	want := found("ErrImagePull: no such image (1 of 1 Pod)", "east: FailedScheduling: no node has room (1 of 1 Pod)", "cluster mars did not answer just now", "east: ErrImagePull: no such image (1 of 1 Pod)")
	want.Problems[2].Next = far
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(situation.Fleet{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for path, n := range requests() {
		if strings.Contains(path, "/clusters/east/") && n != 1 {
			t.Errorf("%s was asked for %d times", path, n)
		}
		if strings.Contains(path, "/clusters/south/") {
			t.Errorf("a fourth cluster was asked: %s", path)
		}
	}
}

// TestExamineWhatIsShown: what no screen has room for is not asked about.
func TestExamineWhatIsShown(t *testing.T) {
	url, requests := ailing(t)
	f := &fleet.Flags{Kubeconfig: commandtest.Kubeconfig(t, url, "")}
	var found situation.Fleet
	for range situation.MostProblems {
		found.Problems = append(found.Problems, situation.Problem{Kind: "ConfigMap", Namespace: "shop", Name: "a", Clusters: []string{"east"}})
	}
	found.Problems = append(found.Problems, situation.Problem{Kind: "Deployment", Namespace: "shop", Name: "web", Clusters: []string{"east"}})
	checkup.Examine(t.Context(), f, &found)
	if n := len(requests()); n != 0 || found.Problems[situation.MostProblems].Symptom != "" {
		t.Errorf("%d paths were asked for, and it says %q", n, found.Problems[situation.MostProblems].Symptom)
	}
}

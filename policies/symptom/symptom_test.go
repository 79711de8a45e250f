package symptom

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// parse is a Pod with the status.
func parse(t *testing.T, status string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.Unmarshal([]byte("status: "+status), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestOf(t *testing.T) {
	const well, pull = `{phase: Running, containerStatuses: [{name: app, ready: true, state: {running: {}}}]}`,
		`{phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ErrImagePull, message: "no such image: a:1"}}}]}`
	cases := map[string]struct {
		pods []string // their status
		want Symptom
	}{
		"there are no Pods": {},
		"all are well":      {pods: []string{well, `{phase: Succeeded, containerStatuses: [{name: app, state: {terminated: {exitCode: 0, reason: Completed}}}]}`}},
		"it is on its way":  {pods: []string{`{phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]}`}},
		"the image cannot be pulled": {[]string{pull, well}, Symptom{
			Reason: "ErrImagePull", Text: "ErrImagePull: no such image: a:1 (1 of 2 Pods)",
		}},
		"an init container cannot be pulled": {[]string{`{phase: Pending, initContainerStatuses: [{name: i, state: {waiting: {reason: ImagePullBackOff}}}], containerStatuses: [{name: app, state: {waiting: {reason: PodInitializing}}}]}`},
			Symptom{Reason: "ImagePullBackOff", Text: "ImagePullBackOff: container i (1 of 1 Pod)"}},
		"no node has room": {[]string{`{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/2 nodes are available: 2 Insufficient cpu."}]}`},
			Symptom{Reason: "FailedScheduling", Text: "FailedScheduling: 0/2 nodes are available: 2 Insufficient cpu. (1 of 1 Pod)"}},
		"it ends again and again": {[]string{`{phase: Running, containerStatuses: [{name: app, state: {waiting: {reason: CrashLoopBackOff, message: "back-off 5m0s restarting failed container"}}, lastState: {terminated: {exitCode: 2, reason: Error}}}]}`},
			Symptom{Reason: "CrashLoopBackOff", Text: "CrashLoopBackOff: container app ended with exit code 2 (1 of 1 Pod)"}},
		"it takes too much memory": {[]string{`{phase: Running, containerStatuses: [{name: app, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}`},
			Symptom{Reason: "OOMKilled", Text: "OOMKilled: container app took more memory than its limit allows (1 of 1 Pod)"}},
		"it ended once": {[]string{`{phase: Failed, containerStatuses: [{name: app, state: {terminated: {exitCode: 3, message: no database}}}]}`},
			Symptom{Reason: "Error", Text: "Error: container app ended with exit code 3: no database (1 of 1 Pod)"}},
		"it was driven out": {[]string{`{phase: Failed, reason: Evicted, message: The node was low on memory}`},
			Symptom{Reason: "Evicted", Text: "Evicted: The node was low on memory (1 of 1 Pod)"}},
		"its probe fails": {[]string{`{phase: Running, containerStatuses: [{name: app, state: {running: {}}}]}`},
			Symptom{Reason: "NotReady", Text: "NotReady: container app runs, and its readiness probe does not succeed (1 of 1 Pod)"}},
		"several things, the most frequent first": {[]string{`{phase: Failed, reason: Evicted}`, pull, pull}, Symptom{
			Reason: "ErrImagePull", Text: "ErrImagePull: no such image: a:1 (2 of 3 Pods); Evicted (1 of 3 Pods)",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var pods []*corev1.Pod
			for _, status := range tc.pods {
				pods = append(pods, parse(t, status))
			}
			if diff := cmp.Diff(tc.want, Of(pods)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestShown: that an Event stands for several says nothing of why. No credentials of an address are repeated, and it is one line.
func TestShown(t *testing.T) {
	want := Symptom{Reason: "FailedCreate", Text: "FailedCreate: exceeded quota: small"}
	for _, message := range []string{"exceeded quota: small", "(combined from similar events): exceeded quota: small", "exceeded\n\x00quota:\u2028small"} {
		if got := FromEvent("FailedCreate", message); got != want {
			t.Errorf("%q: %+v, want %+v", message, got, want)
		}
	}
	secret := strings.Repeat("hunter2", 30)
	want = Symptom{Reason: "Failed", Text: "Failed: Post https://hook.example/mutate: EOF"}
	if got := FromEvent("Failed\u200b", "Post https://bob:"+secret+"@hook.example/mutate?token="+secret+": EOF"); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

package symptom

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestPublic: more people see what is told than may read Pods, so that nothing of it is what a program wrote. It stays
// the same while Pods come and go.
func TestPublic(t *testing.T) {
	const well, pull = `{phase: Running, containerStatuses: [{name: app, ready: true, state: {running: {}}}]}`,
		`{phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ErrImagePull, message: "no such image: a:1"}}}]}`
	cases := map[string]struct {
		pods []string
		want Symptom
	}{
		"all are well":               {pods: []string{well}},
		"the image cannot be pulled": {[]string{pull, well}, Symptom{Reason: "ErrImagePull", Text: "ErrImagePull: no such image: a:1"}},
		"its runtime says more than that": {[]string{`{phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ErrImagePull, message: 'rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/acme/web:1": failed to resolve reference "docker.io/acme/web:1": docker.io/acme/web:1: not found'}}}]}`},
			Symptom{Reason: "ErrImagePull", Text: "ErrImagePull: docker.io/acme/web:1: not found"}},
		"a registry's answer has credentials in its address, and lines": {[]string{`{phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ErrImagePull, message: "failed to resolve reference \"r/a:1\": unexpected status from GET request to https://bob:hunter2@reg.example/token?account=bob&password=hunter2&X-Amz-Signature=abcdef: 401\r\n\e[31mUnauthorized\u202e"}}}]}`},
			Symptom{Reason: "ErrImagePull", Text: "ErrImagePull: r/a:1: unexpected status from GET request to https://reg.example/token: 401 [31mUnauthorized"}},
		"more than one cannot pull": {[]string{pull, pull}, Symptom{Reason: "ErrImagePull", Text: "ErrImagePull: no such image: a:1"}},
		"something else besides":    {[]string{pull, pull, `{phase: Failed, reason: Evicted, message: The node was low on memory}`}, Symptom{Reason: "ErrImagePull", Text: "ErrImagePull: no such image: a:1"}},
		"a key is not there": {[]string{`{phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: CreateContainerConfigError, message: 'secret "db" not found'}}}]}`},
			Symptom{Reason: "CreateContainerConfigError", Text: `CreateContainerConfigError: secret "db" not found`}},
		"no node has room": {[]string{`{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/2 nodes are available: 2 Insufficient cpu."}]}`},
			Symptom{Reason: "FailedScheduling", Text: "FailedScheduling: 0/2 nodes are available: 2 Insufficient cpu."}},
		"a program that ends says why": {[]string{`{phase: Running, containerStatuses: [{name: app, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 2, reason: Error, message: "no answer of postgres://shop:hunter2@db"}}}]}`},
			Symptom{Reason: "CrashLoopBackOff", Text: "CrashLoopBackOff: container app ended with exit code 2"}},
		"one that ended once, too": {[]string{`{phase: Failed, message: "hunter2", containerStatuses: [{name: app, state: {terminated: {exitCode: 3, message: hunter2}}}]}`},
			Symptom{Reason: "Error", Text: "Error: container app ended with exit code 3"}},
		"a hook fails, with what it wrote": {[]string{`{phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: PostStartHookError, message: "rpc error: hunter2"}}}]}`},
			Symptom{Reason: "PostStartHookError", Text: "PostStartHookError: container app"}},
		"a Pod fails, with what its node wrote": {[]string{`{phase: Failed, reason: Evicted, message: hunter2}`}, Symptom{Reason: "Evicted", Text: "Evicted"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var pods []*corev1.Pod
			for _, status := range tc.pods {
				pods = append(pods, parse(t, status))
			}
			if diff := cmp.Diff(tc.want, Public(pods)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestGoesOn: kubelets say of one thing by turns that it fails, and that they wait before they try again.
func TestGoesOn(t *testing.T) {
	for name, tc := range map[string]struct {
		was, is string
		want    bool
	}{
		"the same":                           {"ErrImagePull", "ErrImagePull", true},
		"an image, before it is tried again": {"ErrImagePull", "ImagePullBackOff", true},
		"and again":                          {"ImagePullBackOff", "ErrImagePull", true},
		"a program that ends again":          {"CrashLoopBackOff", "Error", true},
		"another thing":                      {"ErrImagePull", "CrashLoopBackOff", false},
		"the first":                          {"", "ErrImagePull", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Symptom{Reason: tc.is}).GoesOn(tc.was); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}

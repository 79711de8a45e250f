package registration_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/registration"
)

// TestTogether: several who join one cluster at the same time, or take it out, are told in
// words what to do, or succeed; and the same again succeeds.
func TestTogether(t *testing.T) {
	env, member := hubs.Env(t), hubs.Env(t)
	for _, line := range []string{
		"join east --wait 0s --cluster-kubeconfig " + member.Kubeconfig,
		"unjoin east --wait 30s --cluster-kubeconfig " + member.Kubeconfig,
	} {
		for _, result := range together(t, 6, line+" --kubeconfig "+env.Kubeconfig) {
			if result.Code != 0 && !reported(result.Err) {
				t.Errorf("%s: %s", line, result)
			}
			for _, raw := range []string{"Operation cannot be fulfilled", "already exists", "the object has been modified"} {
				if strings.Contains(result.Err, raw) {
					t.Errorf("%s: it says %q: %s", line, raw, result)
				}
			}
		}
		if !strings.HasPrefix(line, "join") {
			continue
		}
		if result := call(t, strings.Fields(line+" --kubeconfig "+env.Kubeconfig)...); result.Code != 0 {
			t.Errorf("the same again: %s", result)
		}
	}
}

// together runs one line several times at once.
func together(t *testing.T, times int, line string) []commandtest.Result {
	t.Helper()
	results := make([]commandtest.Result, times)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range times {
		all.Go(func() {
			<-begin
			results[i] = commandtest.Run(t.Context(), commandtest.Root(registration.Commands), "", strings.Fields(line)...)
		})
	}
	close(begin)
	all.Wait()
	return results
}

// reported reports whether an error says what to do: it is about somebody who was quicker, by the hub's
// word or ours, or by what is there now.
func reported(text string) bool {
	for _, says := range []string{"run the same again", "or ask again", "there is no cluster east", "is leaving"} {
		if strings.Contains(text, says) {
			return true
		}
	}
	return false
}

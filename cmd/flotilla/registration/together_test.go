package registration_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/registration"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// TestTogether: several who join one cluster at the same time, or take it out, are told in
// words what to do, or succeed; and the same again succeeds.
func TestTogether(t *testing.T) {
	env, member := servertest.New(t), servertest.New(t)
	for _, line := range []string{
		"join east --wait 0s --cluster-kubeconfig " + member.Kubeconfig,
		"unjoin east --wait 30s --cluster-kubeconfig " + member.Kubeconfig,
	} {
		for _, said := range together(t, 6, line+" --kubeconfig "+env.Kubeconfig) {
			if said.Code != 0 && !reported(said.Err) {
				t.Errorf("%s: %s", line, said)
			}
			for _, raw := range []string{"Operation cannot be fulfilled", "already exists", "the object has been modified"} {
				if strings.Contains(said.Err, raw) {
					t.Errorf("%s: it says %q: %s", line, raw, said)
				}
			}
		}
		if !strings.HasPrefix(line, "join") {
			continue
		}
		if said := call(t, strings.Fields(line+" --kubeconfig "+env.Kubeconfig)...); said.Code != 0 {
			t.Errorf("the same again: %s", said)
		}
	}
}

// together runs one line several times at once.
func together(t *testing.T, times int, line string) []commandtest.Result {
	t.Helper()
	said := make([]commandtest.Result, times)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range times {
		all.Go(func() {
			<-begin
			said[i] = commandtest.Run(t.Context(), commandtest.Root(registration.Commands), "", strings.Fields(line)...)
		})
	}
	close(begin)
	all.Wait()
	return said
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

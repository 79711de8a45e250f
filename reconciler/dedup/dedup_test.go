package dedup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/reconciler/dedup"
)

func TestMessages(t *testing.T) {
	var m dedup.Messages[string]
	got := []bool{m.Record("web", "no"), m.Record("web", "no"), m.Record("api", "no"), m.Record("web", "never")}
	m.Forget("web")
	got = append(got, m.Record("web", "never"))
	if diff := cmp.Diff([]bool{true, false, true, true, true}, got); diff != "" {
		t.Errorf("what is new (-want +got):\n%s", diff)
	}
}

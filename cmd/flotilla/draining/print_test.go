package draining_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/draining"
	"github.com/flotilla-io/flotilla/policies/drain"
)

// TestTable: a row says what changes.
func TestTable(t *testing.T) {
	to := []workv1alpha2.TargetCluster{{Name: "east", Replicas: 4}}
	var out strings.Builder
	if err := (draining.Report{Cluster: "edge", Rows: []drain.Row{
		{Kind: "Deployment", Namespace: "shop", Name: "api", State: drain.Leaves, Replicas: 4, To: to},
		{Kind: "Deployment", Namespace: "shop", Name: "web", State: drain.Leaves, Replicas: 4, To: to, RunsOn: true},
		{Kind: "Service", Namespace: "shop", Name: "api", State: drain.Leaves, To: []workv1alpha2.TargetCluster{{Name: "east"}}, Unready: []string{"east"}, Why: "kept until east is healthy, and east is lost"},
		{Kind: "Service", Namespace: "shop", Name: "web", State: drain.Leaves, To: []workv1alpha2.TargetCluster{{Name: "east"}}, RunsOn: true, Unready: []string{"east"}, Why: "kept until east is healthy, and east is lost"},
	}}).Table(&out); err != nil {
		t.Fatal(err)
	}
	const want = `NAMESPACE  KIND        NAME  FROM    TO
shop       Deployment  api   edge=4  east=4
shop       Deployment  web   edge=4  - leaves, and runs on in east=4
shop       Service     api   edge    east: kept until east is healthy, and east is lost
shop       Service     web   edge    - leaves, and runs on in east: kept until east is healthy, and east is lost
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAVerdictOfSeveral: each template has a line, what is the same for several is said once, and no patch stands in between.
func TestAVerdictOfSeveral(t *testing.T) {
	const room = "no other place: 0/3 clusters are available"
	row := func(name, why, next string) drain.Row {
		return drain.Row{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name, State: drain.Refused, Why: why, Next: next}
	}
	rows := []drain.Row{
		row("api", room, "make room for it: flotilla explain deployment/api -n shop"),
		row("db", "kept until west is healthy", "see what keeps that from it: flotilla explain deployment/db -n shop; to give the old copy up: flotilla kubectl patch x"),
		row("web", room, "make room for it: flotilla explain deployment/web -n shop"),
	}
	const lines = `
  Deployment shop/api: refused: no other place: 0/3 clusters are available: make room for it: flotilla explain deployment/api -n shop
  Deployment shop/db: refused: kept until west is healthy: see what keeps that from it: flotilla explain deployment/db -n shop; flotilla drain east --dry-run -o json has the command that gives the old copy up
  Deployment shop/web: the same as Deployment shop/api: make room for it: flotilla explain deployment/web -n shop`
	for name, tc := range map[string]struct {
		report draining.Report
		want   string
	}{
		"a drain":    {draining.Report{Cluster: "east", Rows: rows}, "3 of 3 stay in east:" + lines + "\nWhat finds a place later still goes; flotilla uncordon east ends the drain"},
		"a dry run":  {draining.Report{Cluster: "east", Rows: rows, DryRun: true}, "3 of 3 would stay in east:" + lines},
		"many of it": {draining.Report{Cluster: "east", Rows: append(slices.Clone(rows), row("x", room, "")), DryRun: true}, "4 of 4 would stay in east:" + lines + "\n  and 1 more, as listed"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.report.Verdict(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

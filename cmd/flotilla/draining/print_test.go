package draining_test

import (
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

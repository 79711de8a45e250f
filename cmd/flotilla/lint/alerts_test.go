package lint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint"
)

// TestAlerts: what has no effect in Alerts and Providers is said before it is committed.
func TestAlerts(t *testing.T) {
	linter, err := lint.New()
	if err != nil {
		t.Fatal(err)
	}
	const content = `---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: pager, namespace: shop}
spec: {type: opsgenie}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata: {name: a, namespace: shop}
spec:
  providerRef: {name: pagre}
  eventSources: [{kind: Kustomization, name: "*"}, {kind: HelmRelease, name: "*"}]
  exclusionList: ["waiting.*", "("]
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: room, namespace: ops}
spec: {type: matrix, address: "https://matrix.org", channel: "#room", secretRef: {name: room}}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata: {name: well, namespace: infra}
spec: {providerRef: {name: chat}, eventSources: [{kind: GitRepository, name: fleet}, {kind: Kustomization, name: "*", namespace: infra}]}
`
	report, err := linter.Lint(t.Context(), []lint.File{{Name: "a.yaml", Content: []byte(content)}}, lint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range report.Findings {
		got = append(got, f.String())
	}
	want := []string{
		"a.yaml:5: warning: Provider shop/pager: spec.type: opsgenie is not served yet, and nothing is sent: use one of alertmanager, discord, generic, generic-hmac, githubdispatch, googlechat, grafana, matrix, msteams, pagerduty, slack",
		"a.yaml:11: warning: Alert shop/a: spec.providerRef: the Provider pagre is not in these files, and nothing is sent without it (did you mean pager?): add it, or ignore this if it is elsewhere",
		"a.yaml:12: warning: Alert shop/a: spec.eventSources[1].kind: HelmRelease is not served yet, and has no events: use GitRepository, OCIRepository, Bucket, ExternalArtifact, Kustomization",
		`a.yaml:13: warning: Alert shop/a: spec.exclusionList[1]: "(" counts for nothing, as it is no regular expression: missing closing )`,
		"a.yaml:18: warning: Provider ops/room: spec.channel: it needs spec.channel, the ID of a room such as !abc:matrix.org",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

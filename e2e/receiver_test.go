package e2e

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// TestFluxAndReceivers makes Receivers by the real command line of Flux, and calls them as a forge does;
// and looks at Alerts, and makes Secrets for logins and proxies.
func TestFluxAndReceivers(t *testing.T) {
	f := flux{t: t, binary: built(t, fluxProgram), namespace: fleet.NameOf(t), cache: t.TempDir()}
	repo := the.repository(t)
	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, f.namespace, "nginx:1.29"))
	first := repo.push("first")
	the.follow(t, repo.url, "interval: 1h", "interval: 1h")
	the.applied(t, f.namespace, first, 2*time.Minute)
	f.check([]fluxStep{
		{args: "create secret receiver hook -n NAMESPACE --type=github --token=" + hookToken + " --hostname=hooks.test", want: []string{`secret 'hook' created`}},
		{args: "create receiver hook -n NAMESPACE --type=github --event=push --secret-ref=hook --resource=GitRepository/src",
			want: []string{`✔ Receiver hook is ready`, `✔ generated webhook URL /hook/[0-9a-f]{64}`}},
		{args: "get receivers -n NAMESPACE", want: []string{`^hook\s+False\s+True\s+Receiver initialized for path: /hook/[0-9a-f]{64}`}},
		{args: "get all -n NAMESPACE", want: []string{`^receiver/hook\s+False\s+True`}},
		{args: "get alerts -n NAMESPACE", want: []string{`^commits\s+False\s+True`}},
		{args: "export receiver hook -n NAMESPACE", want: []string{`^kind: Receiver$`, `^  type: github$`}},
		{args: "export alert --all -n NAMESPACE", want: []string{`^kind: Alert$`}},
		{args: "export alert-provider --all -n NAMESPACE", want: []string{`^kind: Provider$`}},
		{args: "reconcile receiver hook -n NAMESPACE", want: []string{`✔ Receiver reconciliation completed`}},
		{args: "create secret oci login -n NAMESPACE --url=registry.example.com --username=u --password=p", want: []string{`oci secret 'login' created`}},
		{args: "create secret proxy proxy -n NAMESPACE --address=http://127.0.0.1:1 --username=u --password=p", want: []string{`secret 'proxy' created`}},
	})
	path := the.Kubectl(t, "", "get", "receiver", "hook", "-n", f.namespace, "-o", "jsonpath={.status.webhookPath}")
	if said := the.Kubectl(t, "", "get", "secret", "hook", "-n", f.namespace, "-o", `jsonpath={.metadata.annotations.notification\.toolkit\.fluxcd\.io/webhook}`); said != "https://hooks.test"+path {
		t.Errorf("Flux calls it %s, and its path is %s", said, path)
	}
	repo.write("app/web.yaml", fmt.Sprintf(byHandApp, f.namespace, "nginx:1.30"))
	second := repo.push("second")
	called(t, path)
	the.applied(t, f.namespace, second, time.Minute)
	f.check([]fluxStep{
		{args: "suspend receiver hook -n NAMESPACE", want: []string{`✔ receiver suspended`}},
		{args: "resume receiver hook -n NAMESPACE", want: []string{`✔ Receiver reconciliation completed`}},
	})
	f.check([]fluxStep{
		{args: "delete receiver hook -n NAMESPACE --silent", want: []string{`✔ receiver deleted`}},
		{args: "get receivers -n NAMESPACE", want: []string{`no Receiver objects found`}, fails: true},
	})
}

const hookToken = "e2e-hook-token"

// called waits until a Receiver has taken a push.
func called(t *testing.T, path string) {
	t.Helper()
	body := []byte(`{"ref": "refs/heads/main"}`)
	mac := hmac.New(sha256.New, []byte(hookToken))
	mac.Write(body)
	eventually(t, time.Minute, "the Receiver takes a push", func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+the.hooks+path, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-GitHub-Event", "push")
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers HTTP %d", resp.StatusCode)
		}
		return nil
	})
}

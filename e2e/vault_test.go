package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/s3server"
)

// inVault follows a bucket whose files are encrypted for a key of Vault.
const inVault = `
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: %[1]s}
stringData: {accesskey: %[2]s, secretkey: %[3]s}
---
apiVersion: v1
kind: Secret
metadata: {name: sops, namespace: %[1]s, labels: {reconcile.fluxcd.io/watch: Enabled}}
stringData: {sops.vault-token: hvs.old, sops.vault-address: "%[5]s"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata: {name: src, namespace: %[1]s}
spec: {endpoint: "%[4]s", bucketName: fleet, insecure: true, interval: 1h, secretRef: {name: keys}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: %[1]s}
spec:
  interval: 1h
  prune: true
  path: ./app
  targetNamespace: %[1]s
  sourceRef: {kind: Bucket, name: src}
  decryption: {provider: sops, secretRef: {name: sops}}
`

// TestFilesOfVault applies a file that the library of SOPS encrypted for a key of Vault (see e2e/sops), once the token counts.
func TestFilesOfVault(t *testing.T) {
	vault := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Ciphertext string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/teams/shop/decrypt/flux" || r.Header.Get("X-Vault-Token") != "hvs.new" {
			http.Error(w, `{"errors": ["permission denied"]}`, http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]string{"plaintext": strings.TrimPrefix(in.Ciphertext, "vault:v1:")}})
	}))
	t.Cleanup(vault.Close)
	content, err := os.ReadFile(filepath.Join("..", "sources", "sops", "testdata", "vault.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	bucket := s3server.New("fleet", accessKey)
	bucket.Put(map[string]string{"app/db.yaml": strings.Replace(string(content), "https://vault.example.com:8200", vault.URL, 1)})
	server := httptest.NewServer(bucket)
	t.Cleanup(server.Close)
	namespace := fleet.NameOf(t)
	the.Apply(t, fmt.Sprintf(inRegistry, namespace)+"---"+fmt.Sprintf(inVault, namespace, accessKey, secretKey, server.Listener.Addr(), vault.URL))
	t.Cleanup(func() { the.unfollow(t, namespace) })
	shows := func(want string, args ...string) {
		t.Helper()
		eventually(t, time.Minute, "there is "+want, func(ctx context.Context) error {
			out, err := run(ctx, nil, "flotilla", append([]string{"kubectl", "--kubeconfig", the.Hub.Kubeconfig, "-n", namespace, "get"}, args...)...)
			if err == nil && !strings.Contains(out, want) {
				err = fmt.Errorf("it is %q", out)
			}
			return err
		})
	}
	shows("db.yaml: no key decrypts it: it is encrypted for Vault "+vault.URL+"/v1/teams/shop/keys/flux: Vault refuses the token of sops.vault-token (HTTP 403)",
		"kustomization", "app", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
	the.Kubectl(t, "", "patch", "secret", "sops", "-n", namespace, "--type=merge", "-p", `{"stringData": {"sops.vault-token": "hvs.new"}}`)
	shows("c2hvcA==", "secret", "db", "-o", "jsonpath={.data.user}") // shop
}

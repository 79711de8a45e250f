package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/e2e/chaos/history"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// shy stands for every credential of TestNothingTellsCredentials: nobody but the server that it is for may see it.
const shy = "CANARY-b13-5e1f07"

// parrot is a server that answers with all that it was sent, in one of the ways in which servers do.
type parrot struct {
	how  string
	host string

	mu    sync.Mutex
	heard []string // what each request with a credential asked for
}

// The ways of parrots.
const (
	refuses   = "refuses"
	breaks    = "breaks"
	babbles   = "babbles"
	redirects = "redirects"
)

func newParrot(t *testing.T, how string) *parrot {
	p := &parrot{how: how}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.host = server.Listener.Addr().String()
	return p
}

// ServeHTTP implements http.Handler.
func (p *parrot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	user, password, _ := r.BasicAuth()
	said := strings.NewReplacer("\r", " ", "\n", " ").Replace(fmt.Sprintf("%s %s %s:%s %v %s", r.Method, r.URL, user, password, r.Header, body))
	if slices.ContainsFunc(history.Forms(shy), func(form string) bool { return strings.Contains(said, form) }) {
		p.mu.Lock()
		p.heard = append(p.heard, r.URL.Path)
		p.mu.Unlock()
	}
	w.Header().Set("X-Said", said)
	switch p.how {
	case refuses: // who has not said who he is, is asked to
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Basic realm=%q", said))
		w.WriteHeader(http.StatusUnauthorized)
	case breaks:
		w.WriteHeader(http.StatusInternalServerError)
	case redirects:
		w.Header().Set("Location", "http://fleet:"+shy+"@127.0.0.1:1/"+shy)
		w.WriteHeader(http.StatusFound)
	}
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error> {\"message\": %q}", said, said)
}

// missed says which of these paths no request with a credential asked for.
func (p *parrot) missed(parts ...string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(parts, func(part string) bool {
		return slices.ContainsFunc(p.heard, func(path string) bool { return strings.Contains(path, part) })
	})
}

const shySecrets = `
apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: admin, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: NAMESPACE, name: default}]
---
{apiVersion: v1, kind: Secret, metadata: {name: basic, namespace: NAMESPACE}, stringData: {username: fleet, password: SHY}}
---
{apiVersion: v1, kind: Secret, metadata: {name: bearer, namespace: NAMESPACE}, stringData: {bearerToken: SHY}}
---
{apiVersion: v1, kind: Secret, metadata: {name: identity, namespace: NAMESPACE}, stringData: {identity: "-----BEGIN OPENSSH PRIVATE KEY-----\nSHY\n-----END OPENSSH PRIVATE KEY-----\n", known_hosts: "127.0.0.1 ssh-ed25519 SHY"}}
---
{apiVersion: v1, kind: Secret, metadata: {name: authority, namespace: NAMESPACE}, stringData: {ca.crt: SHY, tls.crt: SHY, tls.key: SHY}}
---
{apiVersion: v1, kind: Secret, metadata: {name: app, namespace: NAMESPACE}, stringData: {githubAppID: "1", githubAppInstallationID: "SHY", githubAppPrivateKey: SHY}}
---
{apiVersion: v1, kind: Secret, metadata: {name: proxy, namespace: NAMESPACE}, stringData: {address: "http://PROXY", username: fleet, password: SHY}}
---
{apiVersion: v1, kind: Secret, metadata: {name: odd-proxy, namespace: NAMESPACE}, stringData: {address: "http://fleet:SHY@PROXY:nan"}}
---
{apiVersion: v1, kind: Secret, metadata: {name: keys, namespace: NAMESPACE}, stringData: {accesskey: SHY, secretkey: SHY}}
---
{apiVersion: v1, kind: Secret, metadata: {name: odd-login, namespace: NAMESPACE}, stringData: {.dockerconfigjson: "SHY"}}
---
{apiVersion: v1, kind: Secret, metadata: {name: age, namespace: NAMESPACE}, stringData: {age.agekey: AGE-SECRET-KEY-SHY}}
---
{apiVersion: v1, kind: Secret, metadata: {name: values, namespace: NAMESPACE}, stringData: {TOKEN: "SHY !"}}
---
{apiVersion: v1, kind: Secret, metadata: {name: cluster, namespace: NAMESPACE}, stringData: {value: "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {server: 'http://PROXY'}}], users: [{name: a, user: {token: SHY}}]}"}}
`

// shySources are by the way of the server; shyOthers ask no server, or one alone.
const (
	shySources = `---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: basic-HOW, namespace: NAMESPACE}, spec: {url: "http://HOST/basic.git", interval: 1h, secretRef: {name: basic}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: bearer-HOW, namespace: NAMESPACE}, spec: {url: "http://HOST/bearer.git", interval: 1h, secretRef: {name: bearer}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: inline-HOW, namespace: NAMESPACE}, spec: {url: "http://fleet:SHY@HOST/inline.git", interval: 1h}}
---
{apiVersion: v1, kind: Secret, metadata: {name: login-HOW, namespace: NAMESPACE}, stringData: {.dockerconfigjson: '{"auths": {"HOST": {"username": "fleet", "password": "SHY"}}}'}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: login-HOW, namespace: NAMESPACE}, spec: {url: "oci://HOST/login", insecure: true, interval: 1h, secretRef: {name: login-HOW}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: Bucket, metadata: {name: keys-HOW, namespace: NAMESPACE}, spec: {endpoint: HOST, bucketName: keys, insecure: true, interval: 1h, secretRef: {name: keys}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: hook-HOW, namespace: NAMESPACE}, stringData: {address: "http://HOST/hook/SHY", token: SHY, headers: "X-Token: SHY"}}
---
{apiVersion: notification.toolkit.fluxcd.io/v1beta3, kind: Provider, metadata: {name: generic-HOW, namespace: NAMESPACE}, spec: {type: generic, secretRef: {name: hook-HOW}}}
---
{apiVersion: notification.toolkit.fluxcd.io/v1beta3, kind: Alert, metadata: {name: generic-HOW, namespace: NAMESPACE}, spec: {providerRef: {name: generic-HOW}, eventSources: [{kind: GitRepository, name: "*"}]}}
---
{apiVersion: notification.toolkit.fluxcd.io/v1beta3, kind: Provider, metadata: {name: forge-HOW, namespace: NAMESPACE}, spec: {type: gitea, address: "http://HOST/forge/fleet", secretRef: {name: hook-HOW}}}
---
{apiVersion: notification.toolkit.fluxcd.io/v1beta3, kind: Alert, metadata: {name: forge-HOW, namespace: NAMESPACE}, spec: {providerRef: {name: forge-HOW}, eventSources: [{kind: Kustomization, name: "*"}]}}
`
	shyOthers = `---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: identity, namespace: NAMESPACE}, spec: {url: "ssh://git@127.0.0.1:1/a.git", interval: 1h, secretRef: {name: identity}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: authority, namespace: NAMESPACE}, spec: {url: "https://127.0.0.1:1/a.git", interval: 1h, secretRef: {name: authority}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: app, namespace: NAMESPACE}, spec: {url: "https://127.0.0.1:1/a.git", provider: github, interval: 1h, secretRef: {name: app}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: proxied, namespace: NAMESPACE}, spec: {url: "https://127.0.0.1:1/a.git", interval: 1h, proxySecretRef: {name: proxy}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: odd-proxy, namespace: NAMESPACE}, spec: {url: "https://127.0.0.1:1/a.git", interval: 1h, proxySecretRef: {name: odd-proxy}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: odd-login, namespace: NAMESPACE}, spec: {url: "oci://127.0.0.1:1/a", interval: 1h, secretRef: {name: odd-login}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: authority, namespace: NAMESPACE}, spec: {url: "oci://127.0.0.1:1/a", interval: 1h, certSecretRef: {name: authority}}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: Bucket, metadata: {name: authority, namespace: NAMESPACE}, spec: {endpoint: "127.0.0.1:1", bucketName: a, interval: 1h, certSecretRef: {name: authority}}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: decrypted, namespace: NAMESPACE}, spec: {interval: 1h, prune: true, path: ./app, sourceRef: {kind: GitRepository, name: src}, decryption: {provider: sops, secretRef: {name: age}}}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: substituted, namespace: NAMESPACE}, spec: {interval: 1h, prune: true, path: ./named, sourceRef: {kind: GitRepository, name: src}, postBuild: {substituteFrom: [{kind: Secret, name: values}]}}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: elsewhere, namespace: NAMESPACE}, spec: {interval: 1h, prune: true, path: ./plain, sourceRef: {kind: GitRepository, name: src}, kubeConfig: {secretRef: {name: cluster}}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: hook, namespace: NAMESPACE}, stringData: {token: SHY}}
---
{apiVersion: notification.toolkit.fluxcd.io/v1, kind: Receiver, metadata: {name: hook, namespace: NAMESPACE}, spec: {type: github, events: [push], secretRef: {name: hook}, resources: [{kind: GitRepository, name: src}]}}
---
{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: src, namespace: NAMESPACE}, spec: {url: "REPOSITORY", interval: 1h, ref: {branch: main}}}
`
)

// oneMore is a source that fails.
const oneMore = `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: more-%d, namespace: %s}, spec: {url: "http://127.0.0.1:1/a.git", interval: 1h}}`

// shyKinds are the kinds whose objects are told of, with Ready or without.
const shyKinds = "gitrepositories.source.toolkit.fluxcd.io,ocirepositories.source.toolkit.fluxcd.io,buckets.source.toolkit.fluxcd.io," +
	"receivers.notification.toolkit.fluxcd.io,kustomizations.kustomize.toolkit.fluxcd.io,providers.notification.toolkit.fluxcd.io,alerts.notification.toolkit.fluxcd.io,commitstatuses.gitops.flotilla.io"

// TestNothingTellsCredentials has servers answer with the credentials that they are sent, in every way, and gives credentials that are
// malformed to all that takes such. None stands in a condition, an Event, a log, a metric, a profile, a file or what commands print.
func TestNothingTellsCredentials(t *testing.T) {
	namespace := fleet.NameOf(t)
	repo := the.repository(t)
	repo.write("app/sealed.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sealed}\ndata: {a: ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]}\nsops: {age: [{recipient: age1x, enc: x}], lastmodified: '2026-01-01T00:00:00Z', mac: 'ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]', version: 3.9.0}\n")
	repo.write("named/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"a-${TOKEN}\", namespace: "+namespace+"}\n")
	repo.write("plain/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: "+namespace+"}\n")
	repo.push("all of it")

	proxy := newParrot(t, refuses)
	manifests := shySecrets + shyOthers
	var parrots []*parrot
	for _, how := range []string{refuses, breaks, babbles, redirects} {
		p := newParrot(t, how)
		parrots = append(parrots, p)
		manifests += strings.NewReplacer("HOW", how, "HOST", p.host).Replace(shySources)
	}
	manifests = strings.NewReplacer("NAMESPACE", namespace, "PROXY", proxy.host, "REPOSITORY", repo.url, "SHY", shy).Replace(manifests)
	the.Kubectl(t, manifests, "create", "-f", "-")
	t.Cleanup(func() { the.unfollow(t, namespace) })

	eventually(t, time.Minute, "all but one source is refused", func(context.Context) error { return tried(t, namespace) })
	more := 0
	eventually(t, 15*time.Second, "every server was sent credentials", func(context.Context) error {
		more++ // an Event before its Alert is known is sent to nobody
		the.Kubectl(t, fmt.Sprintf(oneMore, more, namespace), "create", "-f", "-")
		var all []error
		for _, p := range parrots {
			if missed := p.missed("/basic.git", "/bearer.git", "/inline.git", "/keys", "/hook/", "/forge/"); len(missed) > 0 {
				all = append(all, fmt.Errorf("the one that %s was not for %v", p.how, missed))
			}
		}
		if len(parrots[0].missed("/v2/")) > 0 { // registries ask for a login first
			all = append(all, errors.New("the one that refuses was not for a registry"))
		}
		return errors.Join(all...)
	})
	answer := forged(t, namespace) // and what of it is logged
	all := told(t, namespace)
	all["what a Receiver answers"] = answer
	for where, text := range all {
		for _, form := range history.Forms(shy) {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("%s shows a credential: …%q…", where, text[max(at-120, 0):min(at+len(form)+40, len(text))])
			}
		}
	}
}

// forged sends a Receiver what is signed with something else, and returns the answer.
func forged(t *testing.T, namespace string) string {
	t.Helper()
	path := the.Kubectl(t, "", "get", "receiver", "hook", "-n", namespace, "-o", "jsonpath={.status.webhookPath}")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+the.hooks+path, strings.NewReader(`{"ref": "`+shy+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-GitHub-Event", shy)
	req.Header.Set("X-Hub-Signature-256", "sha256="+shy)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode == http.StatusOK {
		t.Errorf("a forged request is answered with HTTP %d, %v", resp.StatusCode, err)
	}
	return fmt.Sprintf("%v %s", resp.Header, body)
}

// tried is nil once all that has Ready says why it is not, but the source that the others are built from.
func tried(t *testing.T, namespace string) error {
	var list unstructured.UnstructuredList
	if err := json.Unmarshal([]byte(the.Kubectl(t, "", "get", shyKinds, "-n", namespace, "-o", "json")), &list); err != nil {
		return err
	}
	var all []error
	seen := 0
	for _, obj := range list.Items {
		if !slices.Contains([]string{"GitRepository", "OCIRepository", "Bucket", "Kustomization"}, obj.GetKind()) || obj.GetName() == "src" {
			continue
		}
		seen++
		conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
		refused := slices.ContainsFunc(conditions, func(c any) bool {
			of, _ := c.(map[string]any)
			return of["type"] == "Ready" && of["status"] == "False" && of["reason"] != "ArtifactFailed" && of["reason"] != "Progressing"
		})
		if err != nil || !refused {
			all = append(all, fmt.Errorf("%s %s: %v, %w", obj.GetKind(), obj.GetName(), conditions, err))
		}
	}
	if seen < 4*5+8+3 {
		all = append(all, fmt.Errorf("%d objects are there", seen))
	}
	return errors.Join(all...)
}

// told is all that somebody may read who may read no Secrets, and what stands in files but those of the store.
func told(t *testing.T, namespace string) map[string]string {
	t.Helper()
	out := map[string]string{
		"the metrics": the.Kubectl(t, "", "get", "--raw", "/metrics"),
		"a profile":   the.Kubectl(t, "", "get", "--raw", "/debug/pprof/goroutine?debug=1"),
		"Events":      the.Kubectl(t, "", "get", "events.events.k8s.io", "-A", "-o", "json"),
	}
	for _, args := range []string{
		"status", "status -o json", "trace gitrepository/basic-" + refuses, "trace gitrepository/inline-" + breaks, "trace ocirepository/login-" + refuses,
		"trace bucket/keys-" + babbles, "trace kustomization/substituted",
	} {
		text, err := fleet.Run(t.Context(), nil, "flotilla", append(strings.Fields(args), "-n", namespace, "--kubeconfig", the.Hub.Kubeconfig)...)
		out["flotilla "+args] = fmt.Sprint(text, err)
	}
	var list unstructured.UnstructuredList
	if err := json.Unmarshal([]byte(the.Kubectl(t, "", "get", shyKinds, "-n", namespace, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, obj := range list.Items {
		if obj.GetKind() == "GitRepository" {
			unstructured.RemoveNestedField(obj.Object, "spec") // what its user wrote there he may read
		}
		content, err := json.Marshal(obj.Object)
		if err != nil {
			t.Fatal(err)
		}
		out[obj.GetKind()+" "+obj.GetName()] = string(content)
	}
	err := filepath.WalkDir(the.Dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it was renamed
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "etcd":
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if r, zipped := gzip.NewReader(bytes.NewReader(content)); err == nil && zipped == nil {
			content, err = io.ReadAll(r)
		}
		out[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

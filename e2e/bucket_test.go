package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/localfleet"
	"github.com/flotilla-io/flotilla/internal/s3server"
)

// The keys of servers of buckets.
const accessKey, secretKey = "fleet-access", "fleet-secret-key"

// TestFluxAndBuckets works with a bucket by the real command line of Flux, and shows it by ours.
func TestFluxAndBuckets(t *testing.T) {
	f := flux{t: t, binary: built(t, fluxProgram), namespace: fleet.NameOf(t), cache: t.TempDir()}
	bucket := s3server.New("fleet", accessKey)
	server := httptest.NewServer(bucket)
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	the.Apply(t, fmt.Sprintf(inRegistry, f.namespace))
	t.Cleanup(func() { the.unfollow(t, f.namespace) })
	put := func(image string) {
		bucket.Put(map[string]string{"app/web.yaml": fmt.Sprintf(byHandApp, f.namespace, image)})
	}
	put("nginx:1.29")
	const revision = `sha256:[0-9a-f]{64}`
	f.check([]fluxStep{
		{args: "create source bucket src -n NAMESPACE --insecure --bucket-name=fleet --endpoint=" + host + " --access-key=" + accessKey + " --secret-key=" + secretKey + " --interval=1h",
			want: []string{`✔ authentication configured`, `✔ Bucket source reconciliation completed`, `✔ fetched revision: ` + revision}},
		{args: "create kustomization app -n NAMESPACE --source=Bucket/src --path=./app --interval=1h --prune=true",
			want: []string{`✔ Kustomization app is ready`, `✔ applied revision ` + revision}},
		{args: "get sources bucket -n NAMESPACE", want: []string{`^src\s+sha256:[0-9a-f]{8}\s+False\s+True\s+stored artifact: revision 'sha256:[0-9a-f]{8}'`}},
		{args: "get sources all -n NAMESPACE", want: []string{`^bucket/src\s+sha256:[0-9a-f]{8}`}},
		{args: "trace deployment web -n NAMESPACE", want: []string{`^Kustomization:\s+app$`}},
		{args: "export source bucket src -n NAMESPACE", want: []string{`^kind: Bucket$`, `^  bucketName: fleet$`}},
		{args: "stats -n NAMESPACE", want: []string{`^Bucket\s+1\s+0\s+0`}},
	})
	put("nginx:1.30")
	f.check([]fluxStep{
		{args: "reconcile source bucket src -n NAMESPACE", want: []string{`✔ fetched revision ` + revision}},
		{args: "reconcile kustomization app --with-source -n NAMESPACE", want: []string{`✔ applied revision ` + revision}},
	})
	for _, step := range []struct{ args, want string }{
		{"status -n " + f.namespace, "http://" + host + "/fleet"},
		{"trace deployment/web -n " + f.namespace, "Bucket " + f.namespace + "/src"},
		{"trace bucket/src -n " + f.namespace, "all objects"},
		{"suspend source bucket src -n " + f.namespace, "suspended"},
		{"status -n " + f.namespace, "no object is fetched"},
		{"resume source bucket src -n " + f.namespace, "resumed"},
		{"reconcile source bucket src -n " + f.namespace, "fetched revision sha256:"},
	} {
		if out := the.Flotilla(t, strings.Fields(step.args)...); !strings.Contains(out, step.want) {
			t.Errorf("flotilla %s does not print %q; it prints:\n%s", step.args, step.want, out)
		}
	}
	f.check([]fluxStep{
		{args: "suspend source bucket src -n NAMESPACE", want: []string{`suspended`}},
		{args: "resume source bucket src -n NAMESPACE", want: []string{`fetched revision ` + revision}},
		{args: "delete kustomization app -n NAMESPACE --silent", want: []string{`✔ kustomization deleted`}},
		{args: "delete source bucket src -n NAMESPACE --silent", want: []string{`✔ source bucket deleted`}},
	})
}

// buildBuckets builds a real server of S3 out of its own module and returns the program. It is compiled as the programs are, so
// that what they share is compiled once.
func buildBuckets() (string, error) {
	module, err := filepath.Abs("buckets")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(module, "bin", "buckets")
	_, err = inModule(module, "build", "-ldflags=-w -s", "-o", binary, ".")
	return binary, err
}

// storage is a real server of S3 with one bucket.
type storage struct {
	t                *testing.T
	binary, endpoint string
	log              bytes.Buffer
}

const (
	storageBucket = "fleet"
	storageRegion = "fleet-1"
)

// startStorage runs the server for the time of the test.
func startStorage(t *testing.T) *storage {
	t.Helper()
	port, err := localfleet.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &storage{t: t, binary: built(t, bucketsProgram), endpoint: fmt.Sprintf("127.0.0.1:%d", port)}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "buckets", storageBucket), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := s.command(context.WithoutCancel(t.Context()), "serve", s.endpoint, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the server of buckets said:\n%s", s.log.String())
		}
	})
	eventually(t, time.Minute, "the server of buckets answers", func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.endpoint)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	return s
}

func (s *storage) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+secretKey, "AWS_REGION="+storageRegion)
	return cmd
}

// change puts objects there, and removes those without content.
func (s *storage) change(objects map[string]any) {
	s.t.Helper()
	text, err := json.Marshal(objects)
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := s.command(s.t.Context(), "change", s.endpoint, storageBucket)
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("change objects: %v\n%s", err, out)
	}
}

const storageFollowed = `
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: %[1]s}
stringData: {accesskey: %[2]s, secretkey: %[3]s}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata: {name: src, namespace: %[1]s}
spec: {endpoint: "%[4]s", bucketName: fleet, insecure: true, interval: 1h, secretRef: {name: keys}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: %[1]s}
spec: {interval: 1h, prune: true, path: ./app, sourceRef: {kind: Bucket, name: src}}
`

// TestARealServerOfBuckets follows a bucket of a server that verifies signatures, and whose region nobody has named.
func TestARealServerOfBuckets(t *testing.T) {
	s, namespace := startStorage(t), fleet.NameOf(t)
	app := func(image string) string { return fmt.Sprintf(byHandApp, namespace, image) }
	objects := map[string]any{"app/web.yaml": app("nginx:1.29"), "more/a b+c (1)~ä.txt": "a key that has to be encoded"}
	for i := range 1001 { // two pages
		objects[fmt.Sprintf("more/%04d.txt", i)] = "x"
	}
	s.change(objects)
	the.Apply(t, fmt.Sprintf(inRegistry, namespace)+"---"+fmt.Sprintf(storageFollowed, namespace, accessKey, secretKey, s.endpoint))
	t.Cleanup(func() { the.unfollow(t, namespace) })
	images := func(want string) {
		t.Helper()
		eventually(t, time.Minute, want+" is applied", func(ctx context.Context) error {
			out, err := run(ctx, nil, "flotilla", "kubectl", "--kubeconfig", the.Hub.Kubeconfig, "get", "deployment", "web", "-n", namespace, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
			if err == nil && out != want {
				err = fmt.Errorf("it is %q", out)
			}
			return err
		})
	}
	images("nginx:1.29")
	s.change(map[string]any{"app/web.yaml": app("nginx:1.30"), "more/0007.txt": nil})
	if out := the.Flotilla(t, "reconcile", "source", "bucket", "src", "-n", namespace); !regexp.MustCompile(`fetched revision sha256:[0-9a-f]{64}`).MatchString(out) {
		t.Errorf("flotilla reconcile prints:\n%s", out)
	}
	images("nginx:1.30")
	eventually(t, time.Minute, "an Event tells that one object was fetched", func(context.Context) error {
		if out := the.Kubectl(t, "", "get", "events", "-n", namespace); !strings.Contains(out, "stored artifact with 1002 files from bucket 'fleet', 1 of them fetched") {
			return fmt.Errorf("there are:\n%s", out)
		}
		return nil
	})
}

package tenants

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/gitserver"
)

// hubArgs let sources be where the Git server of the fleet is, and nowhere else on
// this machine.
var hubArgs = []string{"--source-networks=127.0.0.1/32", "--receiver-address=127.0.0.1:0"}

// A cell is one field with one target.
type cell struct {
	field  field
	target string
	name   string // of what is written, and of its folder in the repository
	// outcome is what became of it: refused when it was written, or by its
	// condition, or written and without effect.
	outcome string
}

// text fills in a text of the field.
func (c *cell) text(template string) string {
	return strings.NewReplacer("TARGET", c.target, "NAME", c.name).Replace(strings.ReplaceAll(template, "TARGET", c.target))
}

// what tells a cell to people.
func (c *cell) what() string {
	target := strings.TrimSpace(c.target)
	if at := strings.Index(target, "kind: "); at >= 0 {
		target, _, _ = strings.Cut(target[at+len("kind: "):], "\n")
	}
	return fmt.Sprintf("%s → %s (%s)", c.field.path, target, c.name)
}

// TestTenants tries every field with every target. Each ends in a refusal or without
// effect: nothing of others is changed, made, carried, told or called.
func TestTenants(t *testing.T) {
	crown := "CROWN-" + rand.Text()
	cells := the.cells()
	the.prepare(t, crown, cells)
	t.Run("every field is tried", everyField)
	t.Run("nobody may do more than they need", identities)
	t.Run("nothing of others is reached", func(t *testing.T) { attack(t, crown, cells) })
}

func attack(t *testing.T, crown string, cells []*cell) {
	t.Helper()
	before := the.belongings(t)

	for _, c := range cells {
		the.try(t, c)
	}
	the.sentinel(t)
	for _, c := range cells {
		the.judge(t, c)
	}

	after := the.belongings(t)
	for key, was := range before {
		if is, ok := after[key]; !ok {
			t.Errorf("%s is gone", key)
		} else if is != was {
			t.Errorf("%s was changed:\n%s\n%s", key, was, is)
		}
	}
	for key, is := range after {
		if _, ok := before[key]; !ok && strings.Contains(is, "attack-") {
			t.Errorf("%s was made: %s", key, is)
		}
	}
	the.secret(t, crown)
	if calls := the.canary.calls.Load(); calls != 0 {
		t.Errorf("somebody called where nobody may, %d times", calls)
	}
	count(t, cells)
}

// cells are all fields with all their targets.
func (w *world) cells() []*cell {
	at := w.canary.listener.Addr().String()
	_, port, _ := strings.Cut(at, ":")
	_, hub, _ := strings.Cut(strings.TrimPrefix(w.hubURL(), "https://"), ":")
	addresses := []string{at, "127.0.0.1:" + hub, "localhost:" + hub, "[::1]:" + port, "[::ffff:127.0.0.2]:" + port, "2130706434:" + port, "0.0.0.0:" + port}
	var out []*cell
	for _, f := range fields(addresses) {
		for _, target := range f.over {
			out = append(out, &cell{field: f, target: target, name: fmt.Sprintf("attack-%d", len(out))})
		}
	}
	return out
}

func (w *world) hubURL() string {
	config, err := w.Hub.Config()
	if err != nil {
		return ""
	}
	return config.Host
}

// prepare makes what the administrator and the tenants have before the attack, and
// commits the tenant's files.
func (w *world) prepare(t *testing.T, crown string, cells []*cell) {
	t.Helper()
	if err := w.Git.Create(t.Context(), "src"); err != nil {
		t.Fatal(err)
	}
	tree := t.TempDir()
	write := func(path, content string) {
		path = filepath.Join(tree, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range cells {
		if c.field.file != "" {
			write(c.name+"/object.yaml", c.text(c.text(c.field.file)))
		}
	}
	write("sentinel/object.yaml", strings.ReplaceAll(inNamespace(tenant), "NAME", "sentinel"))
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"}, {"commit", "--quiet", "-m", "attack"},
		{"push", "--quiet", w.Git.URL("src"), "HEAD:main"},
	} {
		if _, err := gitserver.Git(t.Context(), tree, args...); err != nil {
			t.Fatal(err)
		}
	}
	fill := strings.NewReplacer("URL", w.Git.URL("src"), "CROWN", crown, "IDENTITY", identity(t), "CANARY", w.canary.listener.Addr().String())
	w.make(t, fill.Replace(setting+"---"+gatewayKind))
	for _, namespace := range namespaces {
		w.make(t, strings.ReplaceAll(fill.Replace(belongings), "NAMESPACE", namespace))
	}
}

// identity is a new key for SSH, indented for YAML.
func identity(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	return "    " + strings.ReplaceAll(strings.TrimSpace(string(pem.EncodeToMemory(block))), "\n", "\n    ")
}

// make writes objects as the administrator.
func (w *world) make(t *testing.T, manifests string) {
	t.Helper()
	for _, obj := range parse(t, manifests) {
		eventually(t, time.Minute, obj.GetKind()+" "+obj.GetName()+" is made", func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(w.hub.Create(ctx, obj.DeepCopy()))
		})
	}
}

func parse(t *testing.T, manifests string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, manifests)
		}
		if len(obj.Object) > 0 {
			out = append(out, obj)
		}
	}
}

// try writes a cell's objects as the tenant, and a status where they have one.
func (w *world) try(t *testing.T, c *cell) {
	t.Helper()
	for _, obj := range parse(t, c.text(c.text(c.field.manifest))) {
		status := obj.Object["status"]
		err := w.red.Create(t.Context(), obj)
		if err == nil && status != nil {
			obj.Object["status"] = status
			err = w.red.Status().Update(t.Context(), obj)
			err = errors.Join(err, w.red.Delete(t.Context(), obj))
		}
		switch {
		case err == nil:
		case refusal(err):
			c.outcome = "refused when written"
		default:
			t.Errorf("%s: %v", c.what(), err)
		}
	}
}

// refusal reports whether all of err are refusals of the server's that say what is wrong.
func refusal(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !refusal(err) })
	}
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsConflict(err)
}

// judge waits for the condition that refuses what was written, of kinds that have one.
func (w *world) judge(t *testing.T, c *cell) {
	t.Helper()
	if c.outcome != "" {
		return
	}
	obj := parse(t, c.text(c.text(c.field.manifest)))[0]
	kind := obj.GetKind()
	if kind == "Provider" {
		w.judgeProvider(t, c)
		return
	}
	if !slices.Contains([]string{"Kustomization", "GitRepository", "OCIRepository", "Bucket"}, kind) || obj.Object["status"] != nil {
		c.outcome = "without effect"
		return
	}
	eventually(t, time.Minute, c.what()+" is refused", func(ctx context.Context) error {
		if err := w.hub.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		for _, entry := range conditions {
			condition, _ := entry.(map[string]any)
			switch {
			case condition["type"] != "Ready":
			case condition["status"] == "False":
				c.outcome = fmt.Sprint("refused: ", condition["reason"])
				return nil
			case condition["status"] == "True":
				c.outcome = "taken"
				return nil
			}
		}
		return fmt.Errorf("conditions are %v", conditions)
	})
	if c.outcome == "taken" {
		t.Errorf("%s: it is ready", c.what())
	}
}

// judgeProvider waits until it is reported that a Provider's post was refused.
func (w *world) judgeProvider(t *testing.T, c *cell) {
	t.Helper()
	eventually(t, time.Minute, c.what()+" is refused", func(ctx context.Context) error {
		var list gitopsv1alpha1.CommitStatusList
		if err := w.hub.List(ctx, &list, client.InNamespace(tenant)); err != nil {
			return err
		}
		for _, status := range list.Items {
			synced := meta.FindStatusCondition(status.Status.Conditions, gitopsv1alpha1.CommitStatusSynced)
			if status.Spec.ProviderRef.Name == c.name && synced != nil && synced.Status == metav1.ConditionFalse {
				c.outcome = "refused: " + synced.Reason
				return nil
			}
		}
		return fmt.Errorf("none of %d commit statuses says so", len(list.Items))
	})
}

// sentinel sees to it that the loops have seen all that was written: what comes after
// it, and is allowed, is done.
func (w *world) sentinel(t *testing.T) {
	t.Helper()
	manifest := strings.ReplaceAll(applied+accountLines["the tenant's account"], "NAME", "sentinel") + `---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: sentinel, namespace: red}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: sentinel}]
  placement: {clusterAffinity: {clusterNames: [east, west]}}
`
	for _, obj := range parse(t, manifest) {
		if err := w.red.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	for name, member := range w.members {
		eventually(t, time.Minute, "what the tenant may do reaches "+name, func(ctx context.Context) error {
			obj := parse(t, strings.ReplaceAll(inNamespace(tenant), "NAME", "sentinel"))[0]
			return member.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		})
	}
}

// count prints the matrix in numbers.
func count(t *testing.T, cells []*cell) {
	t.Helper()
	of := map[string]int{}
	for _, c := range cells {
		of[c.outcome]++
	}
	text, err := json.MarshalIndent(of, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d cells of %d fields:\n%s", len(cells), len(fields(nil)), text)
}

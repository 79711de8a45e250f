package chaos

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/chaos/history"
	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/gitserver"
)

// source has the control plane fetch a repository with a password, and waits until what
// it fetched is kept.
func (w *world) source(t *testing.T) {
	t.Helper()
	tree := t.TempDir()
	write := os.WriteFile(filepath.Join(tree, "none.yaml"), []byte("# nothing\n"), 0o600)
	if err := errors.Join(write, w.Git.Create(t.Context(), "src")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"}, {"commit", "--quiet", "-m", "nothing"},
		{"push", "--quiet", w.Git.URL("src"), "HEAD:main"},
	} {
		if _, err := gitserver.Git(t.Context(), tree, args...); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{
		"{apiVersion: v1, kind: Secret, metadata: {name: src, namespace: shop}, stringData: {username: fleet, password: " + canaryOf("src", 1) + "}}",
		"{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: src, namespace: shop}, spec: {url: \"" + w.Git.URL("src") +
			"\", interval: 5s, ref: {branch: main}, secretRef: {name: src}}}",
	} {
		obj, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 2*time.Minute, "a repository is fetched", func(ctx context.Context) error {
		obj, err := parse("{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository}")
		if err != nil {
			return err
		}
		if err := w.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "src"}, obj); err != nil {
			return err
		}
		if _, there, _ := unstructured.NestedMap(obj.Object, "status", "artifact"); !there {
			return fmt.Errorf("its status is %v", obj.Object["status"])
		}
		return nil
	})
}

// secrets are what must stand nowhere but where it belongs: what users have in theirs,
// what a source is fetched with, and the members' tokens.
func (w *world) secrets(ctx context.Context) ([]string, error) {
	out := []string{canary}
	var list corev1.SecretList
	if err := w.hub.List(ctx, &list, client.InNamespace(workv1alpha2.NamespaceKarmadaCluster)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if token := string(list.Items[i].Data["token"]); token != "" {
			out = append(out, token)
		}
	}
	if len(out) == 1 {
		return nil, errors.New("no cluster has a token")
	}
	return out, nil
}

// texts are what somebody may read: metrics, what the command line says, all objects of
// the control plane and Events of members, but what is to hold secrets; and all files
// but those of stores.
func (w *world) texts(ctx context.Context, end history.End) ([]history.Text, error) {
	out, err := w.files(end)
	if err != nil {
		return nil, err
	}
	for _, p := range w.programs() {
		content, err := w.metrics(ctx, p)
		if err != nil {
			return nil, err
		}
		out = append(out, history.Text{Where: "the metrics of " + p.Name, Content: content})
	}
	status, err := fleet.Run(ctx, nil, "flotilla", "status", "--kubeconfig", w.kubeconfig)
	if err != nil {
		return nil, err
	}
	out = append(out, history.Text{Where: "flotilla status", Content: status})
	var wrong error
	keep := func(where string, obj *unstructured.Unstructured) {
		content, err := json.Marshal(obj.Object)
		wrong = errors.Join(wrong, err)
		out = append(out, history.Text{Where: where + string(nameOf(obj.GetKind(), obj.GetNamespace(), obj.GetName())), Content: string(content)})
	}
	err = w.objects(ctx, func(kind string, obj *unstructured.Unstructured) {
		switch kind {
		case "Secret":
			return
		case "Work":
			unstructured.RemoveNestedField(obj.Object, "spec", "workload")
		}
		obj.SetKind(kind)
		keep("", obj)
	})
	if err := errors.Join(err, wrong); err != nil {
		return nil, err
	}
	for cluster, member := range w.members {
		for _, kind := range []string{"events", "configmaps", "deployments", "pods"} {
			gvr := schema.GroupVersionResource{Version: "v1", Resource: kind}
			if kind == "deployments" {
				gvr = deployments
			}
			err := each(ctx, member, gvr, "", "", func(obj *unstructured.Unstructured) { keep("the member "+cluster+": ", obj) })
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, err
			}
		}
	}
	return out, wrong
}

// files are those of the programs, logs and what sources fetched among them. The agent
// keeps what its cluster is to have, and nothing that it was to have before.
func (w *world) files(end history.End) ([]history.Text, error) {
	var belongs []string
	for _, c := range end.Works {
		if name, found := strings.CutPrefix(string(c.Object), "Secret "+namespace+"/"); found && c.Cluster == pulled {
			belongs = append(belongs, base64.StdEncoding.EncodeToString([]byte(canaryOf(name, c.Version))))
		}
	}
	var out []history.Text
	kept, fetched, shelf := 0, 0, filepath.Join(w.Dir, "agents", pulled, "data")
	err := filepath.WalkDir(w.Dir, func(path string, entry fs.DirEntry, err error) error {
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
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if strings.HasSuffix(path, ".tar.gz") {
			fetched++
			if content, err = unpacked(content); err != nil {
				return fmt.Errorf("unpack %s: %w", path, err)
			}
		}
		text := history.Text{Where: path, Content: string(content)}
		if strings.HasPrefix(path, shelf+string(filepath.Separator)) {
			text.May = belongs
			info, err := entry.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				return fmt.Errorf("%s can be read by others: mode %s", path, info.Mode())
			}
			for _, secret := range belongs {
				kept += strings.Count(text.Content, secret)
			}
		}
		out = append(out, text)
		return nil
	})
	if err == nil && len(belongs) > 0 && kept == 0 {
		err = fmt.Errorf("the agent is to keep %d Secrets, and none was found below %s", len(belongs), shelf)
	}
	if err == nil && fetched == 0 {
		err = errors.New("nothing was found that a source has fetched")
	}
	return out, err
}

// unpacked is what is in a compressed file.
func unpacked(content []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

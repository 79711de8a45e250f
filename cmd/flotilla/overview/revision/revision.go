// Package revision finds the file in a commit that contains an object.
//
// In go a Kustomization, its source and an object; out comes a file with its line, or why it is
// not known. It reads the artifact that the control plane fetched, compares it with its digest,
// and builds it as the control plane did. It writes nothing.
package revision

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/lineage"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
)

// timeout is how long the artifact server may take. It is often not reachable from the user's
// machine.
const timeout = 5 * time.Second

// mostArtifact is how large a packed artifact may be, in bytes: at most as large as its content.
const mostArtifact = 50 << 20

// originKey is kustomize's annotation with the file that an object comes from.
const originKey = "config.kubernetes.io/origin"

// Reader reads what sources fetched from the control plane's artifact server. Use New.
type Reader struct{ http *http.Client }

// New returns a reader.
func New() Reader { return Reader{&http.Client{Timeout: timeout}} }

// open returns the files of an artifact, after comparing them with its digest.
func (r Reader) open(ctx context.Context, from *meta.Artifact) (map[string][]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.URL, nil)
	if err != nil {
		return nil, errors.New("the artifact has an address that is none")
	}
	res, err := r.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the control plane's artifact server cannot be reached from here (%s)", req.URL.Host)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the control plane's artifact server answers %s", res.Status)
	}
	content, err := io.ReadAll(io.LimitReader(res.Body, mostArtifact+1))
	if err != nil {
		return nil, fmt.Errorf("read the artifact: %w", err)
	}
	if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); len(content) > mostArtifact || sum != from.Digest {
		return nil, errors.New("the artifact is not what its digest says")
	}
	files, err := artifact.Extract(bytes.NewReader(content), artifact.Limits{})
	return files.Contents(), err
}

// File finds the file that a template is written in, in the revision of the Kustomization that
// stands: it builds it as the control plane did, and has kustomize say where each object comes
// from.
func (r Reader) File(ctx context.Context, ks *kustomizev1.Kustomization, standing string, source origins.Object, template *unstructured.Unstructured) *lineage.File {
	unknown := func(format string, args ...any) *lineage.File {
		return &lineage.File{Unknown: fmt.Sprintf(format, args...)}
	}
	a := source.GetArtifact()
	if a == nil || a.Revision != standing {
		return unknown("the source is at another revision by now")
	}
	files, err := r.open(ctx, a)
	if err != nil {
		return unknown("%v", err)
	}
	objects, err := build.New(build.Limits{}).Build(ctx, build.Input{Files: files, Path: ks.Spec.Path, Spec: traced(ks)})
	if err != nil {
		return unknown("its revision cannot be built here: %v", err)
	}
	for _, obj := range objects {
		// What is not namespaced has been given a namespace by a build that
		// cannot know, and lost it on the control plane.
		id, want := inventory.IDOf(obj), inventory.IDOf(template)
		if id.GroupKind == want.GroupKind && id.Name == want.Name && (id.Namespace == want.Namespace || want.Namespace == "") {
			return written(files, ks.Spec.Path, obj)
		}
	}
	return unknown("no file of the revision makes it; its name may hold a variable")
}

// traced is what a Kustomization asks of a build, with origins.
func traced(ks *kustomizev1.Kustomization) build.Spec {
	spec := build.Spec{
		TargetNamespace: ks.Spec.TargetNamespace, NamePrefix: ks.Spec.NamePrefix, NameSuffix: ks.Spec.NameSuffix,
		Patches: ks.Spec.Patches, Images: ks.Spec.Images, Components: ks.Spec.Components,
		IgnoreMissingComponents: ks.Spec.IgnoreMissingComponents, BuildMetadata: []string{"originAnnotations"},
	}
	if ks.Spec.PostBuild != nil {
		spec.Variables = maps.Clone(ks.Spec.PostBuild.Substitute)
	}
	return spec
}

// written is the place that kustomize says an object comes from.
func written(files map[string][]byte, root string, obj *unstructured.Unstructured) *lineage.File {
	var origin struct {
		Path         string `json:"path"`
		ConfiguredIn string `json:"configuredIn"`
	}
	if err := yaml.Unmarshal([]byte(obj.GetAnnotations()[originKey]), &origin); err != nil || origin.Path+origin.ConfiguredIn == "" {
		return &lineage.File{Unknown: "the build does not say which file makes it"}
	}
	if origin.Path == "" { // a generator's
		return &lineage.File{Path: path.Join(root, origin.ConfiguredIn)}
	}
	out := &lineage.File{Path: path.Join(root, origin.Path)}
	documents, err := build.Read(files[out.Path], build.Limits{})
	if err != nil {
		return out // its line is not worth an error: the file was built
	}
	var same []build.Document
	for _, d := range documents {
		if d.Fields["kind"] == obj.GetKind() {
			same = append(same, d)
		}
	}
	for _, d := range same {
		metadata, _ := d.Fields["metadata"].(map[string]any)
		if len(same) == 1 || metadata["name"] == obj.GetName() {
			out.Line = d.Line
			break
		}
	}
	return out
}

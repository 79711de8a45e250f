package planning

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/customization"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/forecast/snapshot"
	"github.com/flotilla-io/flotilla/reconciler/forecast/supposition"
	"github.com/flotilla-io/flotilla/sources/build"
)

// world is a fleet, and how files are read and compared with it.
type world struct {
	snapshot *snapshot.Snapshot
	fleet    plan.FleetInput
	reading  reading
	// hub is nil where a file stands for the control plane. as reads variables.
	hub     client.Client
	as      client.Reader
	builder *build.Builder
	// lacks are the Kustomizations whose variables are not known, sorted.
	lacks []string
	// supposed happens to the clusters besides.
	supposed supposition.Supposition
}

// world reads the fleet.
func (f *planFlags) world(ctx context.Context, stdin io.Reader) (*world, error) {
	now := time.Now()
	w := &world{reading: reading{stdin: stdin, namespace: f.hub.Namespace}, as: nothing{}, builder: build.New(build.Limits{})}
	var err error
	if f.fleetFile != "" {
		content, err := readFleet(f.fleetFile)
		if err != nil {
			return nil, command.Usage(err)
		}
		if w.snapshot, err = snapshot.Read(content); err != nil {
			return nil, command.Usage(fmt.Errorf("%s %w", f.fleetFile, err))
		}
	} else if err = w.connect(ctx, f.hub, now); err != nil {
		return nil, err
	}
	if w.reading.namespace == "" {
		w.reading.namespace = "default"
	}
	var given []*configv1alpha1.ResourceInterpreterCustomization
	for i := range w.snapshot.Customizations {
		given = append(given, &w.snapshot.Customizations[i])
	}
	stack := customization.NewStack(lua.New(lua.Options{Now: time.Now, Time: time.Minute}), given)
	w.fleet = w.snapshot.Fleet(stack.Interpreter(), now)
	return w, w.suppose(ctx, f.supposed)
}

// mostFleet is how large the file of a fleet may be, in bytes.
const mostFleet = 256 << 20

// readFleet reads the file of a fleet, which may be a pipe.
func readFleet(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() || info.Mode()&os.ModeDevice != 0 {
		return nil, fmt.Errorf("%s is no file: flotilla fleet export > fleet.yaml writes one", path)
	}
	content, err := io.ReadAll(io.LimitReader(file, mostFleet+1))
	if err == nil && len(content) > mostFleet {
		err = fmt.Errorf("%s has more than %d MiB: it is no export of a fleet, or of one that is too large for it", path, mostFleet>>20)
	}
	return content, err
}

// connect reads the fleet of the control plane.
func (w *world) connect(ctx context.Context, f *fleet.Flags, now time.Time) error {
	hub, err := f.Client()
	if err != nil {
		return err
	}
	namespace, _, err := f.Factory().ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	w.hub, w.as, w.reading.namespace = hub, hub, namespace
	w.reading.scope = func(apiVersion, kind string) (bool, bool) {
		gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
		mapping, err := hub.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return false, false
		}
		return mapping.Scope.Name() == "namespace", true
	}
	w.snapshot, err = snapshot.Of(ctx, hub, now)
	return err
}

// build builds what a Kustomization holds of files. A file of the fleet has no variables: what they are put into stays as it
// is written.
func (w *world) build(ctx context.Context, ks *kustomizev1.Kustomization, files *build.Tree) ([]*unstructured.Unstructured, error) {
	if post := ks.Spec.PostBuild; w.hub == nil && post != nil && len(post.SubstituteFrom) > 0 {
		if name := client.ObjectKeyFromObject(ks).String(); !slices.Contains(w.lacks, name) {
			w.lacks = append(w.lacks, name)
			slices.Sort(w.lacks)
		}
		ks = ks.DeepCopy()
		ks.Spec.PostBuild = nil
	}
	return builder.FromFiles(ctx, w.builder, files, builder.Input{Kustomization: ks, As: w.as, Encrypted: func(string) {}})
}

// mostLacking is how many Kustomizations a note names.
const mostLacking = 3

// notes are what the user should know besides.
func (w *world) notes() []string {
	if len(w.lacks) == 0 {
		return nil
	}
	names, of := strings.Join(w.lacks[:min(len(w.lacks), mostLacking)], ", "), "its"
	if len(w.lacks) > 1 {
		of = "their"
	}
	if more := len(w.lacks) - mostLacking; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return []string{fmt.Sprintf("%s: %s variables come from ConfigMaps and Secrets, which the file of the fleet does not have: they are compared as they are written", names, of)}
}

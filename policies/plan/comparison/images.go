package comparison

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/interpreter/running"
)

// versions are the clusters of each version of an image, by container.
type versions map[string]map[string][]string

// images adds a workload of which clusters will run different versions of an image, where they did not before. Another
// registry is no other version.
func (c *comparer) images(id identity) {
	if id.groupKind() != (schema.GroupKind{Kind: "Pod"}) && running.Of(id.groupKind()) != running.Runs || c.head.plans[id] == nil {
		return
	}
	before, after := c.versions(id, c.base), c.versions(id, c.head)
	for _, container := range slices.Sorted(maps.Keys(after)) {
		if len(after[container]) < 2 || len(before[container]) > 1 {
			continue
		}
		c.risk(RiskImages, id, nil, "clusters run different versions of container %s of %s: %s", container, c.object(id), spread(after[container]))
	}
}

// spread says which clusters run which version.
func spread(of map[string][]string) string {
	parts := make([]string, 0, len(of))
	for _, version := range slices.Sorted(maps.Keys(of)) {
		clusters := of[version]
		in := clusters[0]
		if len(clusters) > 1 {
			in = fmt.Sprintf("%d clusters", len(clusters))
		}
		parts = append(parts, version+" in "+in)
	}
	return strings.Join(parts, ", ")
}

// versions returns those that clusters hold of a template.
func (c *comparer) versions(id identity, side index) versions {
	held := side.holding(side.plans[id])
	d := differ{comparer: c, id: id, object: c.object(id)}
	out, seen := versions{}, map[string]map[string]string{}
	for _, cluster := range held.clusters() {
		content := held.in[cluster]
		key := content.plain()
		if key == "" {
			continue
		}
		if seen[key] == nil {
			seen[key] = map[string]string{}
			if obj := d.read(&content); !hides(obj) {
				seen[key] = imagesOf(obj)
			}
		}
		for container, image := range seen[key] {
			if out[container] == nil {
				out[container] = map[string][]string{}
			}
			out[container][image] = append(out[container][image], cluster)
		}
	}
	return out
}

// imagesOf returns the images of an object by container, without their registries.
func imagesOf(obj *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	if obj == nil {
		return out
	}
	kind := obj.GroupVersionKind().GroupKind()
	path := append(slices.Clone(templatePath(kind)), "spec")
	if kind == (schema.GroupKind{Kind: "Pod"}) {
		path = []string{"spec"}
	}
	for _, field := range []string{"initContainers", "containers"} {
		list, _ := nested(obj.Object, append(slices.Clone(path), field)).([]any)
		for _, item := range list {
			container, _ := item.(map[string]any)
			name, _ := container["name"].(string)
			image, _ := container["image"].(string)
			if name != "" && image != "" {
				out[name] = image[strings.LastIndex(image, "/")+1:]
			}
		}
	}
	return out
}

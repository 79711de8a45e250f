package build

import (
	"fmt"
	"path"
	"strings"
)

// plugins checks the configurations of kustomize's built-in plugins. All other
// plugins are programs, and are refused, as are built-in ones that access more
// than the source.
func (s scope) plugins(field string, entries []string) error {
	for _, entry := range entries {
		content := []byte(entry)
		if inline := strings.Contains(entry, "\n") || strings.HasPrefix(strings.TrimSpace(entry), "{"); !inline {
			name, err := s.local(field, entry)
			if err != nil {
				return err
			}
			if s.files.isDir(name) {
				return s.refuse(field, fmt.Sprintf("%q is a folder; name the files in it", clip(entry)))
			}
			s.files.sealed.Applied(trim(name))
			var found bool
			if content, found = s.files.read(name); !found {
				return s.missing(field, entry)
			}
			if err := stored(s.files, name, content); err != nil {
				return err
			}
		}
		docs, err := s.parse(content)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", trim(s.file), field, err)
		}
		s.count(docs)
		for _, doc := range docs {
			if doc.apiVersion != "builtin" || doc.kind == "HelmChartInflationGenerator" {
				return s.refuse(field, fmt.Sprintf("%s of %s is not a plugin that comes with kustomize", doc.kind, doc.apiVersion))
			}
			if err := doc.texts(func(key, value string) error { return s.pluginText(field, doc.kind, key, value) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// pluginText checks a text in a plugin's configuration: it may be an address, a
// file that the plugin of a kind reads, or YAML itself.
func (s scope) pluginText(field, kind, key, value string) error {
	if isRemote(value) {
		return s.refuse(field, fmt.Sprintf("%q is remote", clip(value)))
	}
	switch key {
	case "path", "paths":
		if name := path.Join(s.dir, value); s.files.isFile(name) {
			return s.yamlFile(name)
		}
	case "files", "envs", "env":
		as, file := "", value
		if key == "files" {
			as = path.Base(value)
			if before, after, named := strings.Cut(value, "="); named {
				as, file = before, after
			}
		}
		name := path.Join(s.dir, file)
		s.files.sealed.Generates(trim(name), kind != "ConfigMapGenerator", as)
		return s.use(name)
	}
	switch key {
	case "patch", "patches", "paths", "jsonOp":
		return s.text(field, value)
	}
	return nil
}

// Package scripts keeps the Lua scripts of customizations out of what variables are replaced in: what looks like a variable
// there is Lua.
//
// In go the content of an object; out comes the same without scripts, and what puts them back. It changes neither.
package scripts

import (
	"maps"
	"strings"
)

const (
	kind  = "ResourceInterpreterCustomization"
	group = "config.karmada.io/"
	field = "luaScript"
)

// Without returns an object without the scripts of a customization, and a function that puts them into what has become of
// it. Any other object is returned as it is.
func Without(content any) (rest any, restore func(any)) {
	fields, _ := content.(map[string]any)
	version, _ := fields["apiVersion"].(string)
	rules := rulesOf(content)
	if fields["kind"] != kind || !strings.HasPrefix(version, group) || len(rules) == 0 {
		return content, func(any) {}
	}
	kept := map[string]any{}
	left := maps.Clone(rules)
	for name, rule := range rules {
		if rule, isRule := rule.(map[string]any); isRule && rule[field] != nil {
			kept[name] = rule[field]
			rule = maps.Clone(rule)
			delete(rule, field)
			left[name] = rule
		}
	}
	spec := maps.Clone(fields["spec"].(map[string]any)) // rulesOf has found some in it
	spec["customizations"] = left
	out := maps.Clone(fields)
	out["spec"] = spec
	return out, func(of any) {
		for name, rule := range rulesOf(of) {
			if rule, isRule := rule.(map[string]any); isRule && kept[name] != nil {
				rule[field] = kept[name]
			}
		}
	}
}

func rulesOf(content any) map[string]any {
	fields, _ := content.(map[string]any)
	spec, _ := fields["spec"].(map[string]any)
	rules, _ := spec["customizations"].(map[string]any)
	return rules
}

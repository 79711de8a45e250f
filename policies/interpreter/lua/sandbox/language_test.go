package sandbox_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/interpreter/lua/sandbox"
)

func clock() time.Time { return time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC) }

// returned calls function f of a script with obj, and returns its result as a
// value of an object.
func returned(t testing.TB, p *sandbox.Pool, body string, obj any) (out any, err error) {
	t.Helper()
	script, err := sandbox.Compile("script", "function f(obj) "+body+" end", "f")
	if err != nil {
		t.Fatal(err)
	}
	err = p.Call(script, 1, func(r sandbox.Results) (err error) {
		out, err = r.Export(r.Values[0], obj)
		return err
	}, obj)
	return out, err
}

// TestLanguage checks that expressions have the values that Lua defines, and that
// nothing that leads out of the sandbox is there.
func TestLanguage(t *testing.T) {
	cases := map[string]string{ // expressions that are true
		"format":                      `string.format("%d/%s %5.2f %x %q %% %c %i", 3.7, nil, 2.5, 255, "a\n", 65, "12") == '3/nil  2.50 ff "a\\n" % A 12'`,
		"format of numbers as text":   `string.format("%s %s %s %s", 1, 0.5, true, 1e15) == "1 0.5 true 1000000000000000"`,
		"concat":                      `1 .. "a" .. 2.5 == "1a2.5"`,
		"concat of a list":            `table.concat({1, "b", 3}, ",", 2) == "b,3" and table.concat({}) == ""`,
		"sub":                         `("hello"):sub(2, -2) == "ell" and ("hello"):sub(-3) == "llo" and ("x"):sub(5) == "" and ("hello"):sub(4, 2) == ""`,
		"byte and char":               `string.char(72, ("i"):byte()) == "Hi" and ("abc"):byte(-1) == 99 and select("#", ("abc"):byte(1, -1)) == 3 and ("a"):byte(9) == nil`,
		"find":                        `select(2, ("a.b"):find(".", 1, true)) == 2 and ("key=value"):find("=") == 4 and ("x"):find("y") == nil and ("abc"):find("b", -1) == nil`,
		"find of nothing":             `("abc"):find("") == 1 and ("abc"):find("", 10) == nil`,
		"match":                       `("web-12"):match("^(%a+)-(%d+)$") == "web" and select(2, ("web-12"):match("(%a+)-(%d+)")) == "12" and ("x"):match("()x") == 1`,
		"gmatch":                      `(function() local s = "" for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do s = s .. k .. v end return s end)() == "a1b2"`,
		"gmatch of nothing":           `(function() local n = 0 for x in ("abc"):gmatch("%d*") do n = n + 1 end return n end)() == 4`,
		"gsub":                        `("hello world"):gsub("o", "0") == "hell0 w0rld" and select(2, ("aaa"):gsub("a", "b", 2)) == 2 and ("abc"):gsub("%w", "%0%0") == "aabbcc"`,
		"gsub by a table":             `("$a $b"):gsub("%$(%w)", {a = 1}) == "1 $b"`,
		"gsub by a function":          `("a1b2"):gsub("%d", function(d) return d + 1 end) == "a2b3"`,
		"gsub of nothing":             `("ab"):gsub("", "-") == "-a-b-"`,
		"gsub at the head":            `("aaa"):gsub("^a", "b") == "baa"`,
		"balance and frontier":        `("f(a(b)c)d"):match("%b()") == "(a(b)c)" and ("THE (quick) fox"):find("%f[%a]%a+%f[%A]", 5) == 6`,
		"captures again":              `("say 'x' y"):match("(['\"])(.-)%1") == "'" `,
		"upper, lower and reverse":    `("aB"):upper() == "AB" and ("aB"):lower() == "ab" and ("abc"):reverse() == "cba" and ("ab"):rep(2) == "abab" and #("abc") == 3`,
		"tonumber":                    `tonumber("10") == 10 and tonumber("0x1F") == 31 and tonumber("1e3") == 1000 and tonumber(" -2.5 ") == -2.5 and tonumber("ff", 16) == 255`,
		"tonumber of no number":       `tonumber("x") == nil and tonumber("") == nil and tonumber("1_0") == nil and tonumber("inf") == nil and tonumber("nan") == nil and tonumber({}) == nil and tonumber("12", 2) == nil`,
		"tostring":                    `tostring(nil) == "nil" and tostring(1.0) == "1" and tostring(true) == "true" and tostring({}) ~= tostring({}) and tostring(print) == tostring(print)`,
		"insert and remove":           `(function() local t = {1, 2} table.insert(t, 3) table.insert(t, 1, 0) local x = table.remove(t) return x == 3 and #t == 3 and table.remove(t, 1) == 0 and t[1] == 1 and table.remove({}) == nil end)()`,
		"sort":                        `(function() local t = {3, 1, 2} table.sort(t) local s = {"b", "a"} table.sort(s, function(a, b) return a > b end) return t[1] == 1 and t[3] == 3 and s[1] == "b" end)()`,
		"unpack and select":           `select("#", unpack({1, 2, 3})) == 3 and select(-1, 1, 2) == 2 and select(2, "a", "b") == "b"`,
		"next":                        `next({}) == nil and next({7}) == 1 and next({a = 1}) == "a"`,
		"pairs with a zeroth":         `(function() local s = "" for k, v in pairs({[0] = "a", "b", "c"}) do s = s .. k .. v end return s end)() == "1b2c0a"`,
		"pairs of what gets shorter":  `(function() local t = {"a", "b", "c", x = 1} for k, v in pairs(t) do if v == "c" then table.remove(t, k) end end return #t == 2 end)()`,
		"pairs removes":               `(function() local t = {a = 1, b = 2, 3} for k in pairs(t) do t[k] = nil end return next(t) == nil end)()`,
		"pairs in the order of names": `(function() local s = "" for k in pairs(obj) do s = s .. k .. "," end return s end)() == "apiVersion,kind,list,metadata,num,spec,"`,
		"pcall":                       `select(2, pcall(error, "x", 0)) == "x" and pcall(function() return 1 end) and select(2, pcall(error, {code = 1})).code == 1`,
		"xpcall":                      `select(2, xpcall(function() error("x", 0) end, function(e) return e .. "!" end)) == "x!"`,
		"math":                        `math.floor(-1.5) == -2 and math.max(1, 3, 2) == 3 and math.huge > 1e300 and math.abs(-1) == 1 and math.mod(7, 3) == 1 and select(2, math.modf(1.5)) == 0.5`,
		"random is the same for all":  `math.random(1, 10) == math.floor(math.random(1, 10) * 0 + 2) or math.random() < 1`,
		"os":                          `os.time() == 1773500966 and os.date("%Y-%m-%d") == "2026-03-14" and os.date("!%H:%M:%S", 0) == "00:00:00" and os.date("*t").yday == 73 and os.time({year = 1970, month = 1, day = 1, hour = 0}) == 0`,
		"varargs":                     `(function(...) local a, b = ... return select("#", ...) == 3 and b == 2 end)(1, 2, 3)`,
		"the old table of arguments":  `(function(...) return arg.n == 2 and arg[2] == 9 end)(8, 9)`,
		"goto":                        `(function() for i = 1, 3 do if i == 2 then goto continue end if i == 3 then return true end ::continue:: end end)()`,
		"closures":                    `(function() local n = 0 local function f() n = n + 1 return n end f() return f() == 2 end)()`,
		"lists":                       `#obj.list == 3 and obj.list[1] == "a" and obj.list[4] == nil`,
		"what is null is nil":         `obj.metadata.nothing == nil`,
		"globals":                     `_G.string == string and _G._G == _G and _VERSION == "Lua 5.1"`,
		"nothing leads out":           `load == nil and loadstring == nil and loadfile == nil and dofile == nil and setfenv == nil and getfenv == nil and getmetatable == nil and setmetatable == nil and rawget == nil and rawset == nil and rawequal == nil and newproxy == nil and module == nil and collectgarbage == nil and io == nil and debug == nil and coroutine == nil and package == nil and channel == nil`,
		"os leads nowhere":            `os.execute == nil and os.exit == nil and os.getenv == nil and os.remove == nil and os.rename == nil and os.tmpname == nil and os.setenv == nil and string.dump == nil`,
		"texts lead nowhere":          `("").__index == nil and ("").dump == nil`,
		"modules":                     `not pcall(require, "os") and require("kube").resourceAdd("1", "500m") == "1500m"`,
		"kube":                        `(function() local kube = require("kube") return kube.getResourceQuantity("1Ki") == 1024 and kube.resourceAdd() == "0" and kube.resourceAdd(nil, 2) == "2" and kube.accuratePodRequirements({}) == nil and #kube.getPodDependencies({}, "n") == 0 end)()`,
		"assert":                      `select(2, pcall(assert, false, "it is not")) == "it is not" and assert(7, "x") == 7 and not pcall(assert, nil)`,
		"ipairs":                      `(function() local s = "" for i, v in ipairs({"a", "b", nil, "d"}) do s = s .. i .. v end return s end)() == "1a2b"`,
		"type":                        `type(nil) == "nil" and type({}) == "table" and type(print) == "function" and type("") == "string" and type(1) == "number" and type(true) == "boolean" and not pcall(type)`,
		"tonumber of other bases":     `tonumber("z", 36) == 35 and tonumber("-101", 2) == -5 and not pcall(tonumber, "1", 99)`,
		"parts of a number":           `(function() local m, e = math.frexp(12) return m == 0.75 and e == 4 and math.ldexp(m, e) == 12 end)()`,
		"remainders":                  `-7 % 3 == 2 and 7 % -3 == -2 and 6 % -3 == 0 and (0/0) % 1 ~= 0 and math.fmod(-7, 3) == -1`,
		"the length of a list":        `table.getn({1, 2, 3}) == 3 and table.maxn({1, 2, nil, 4}) == 4 and table.maxn({}) == 0 and string.len("abc") == 3`,
		"the time of a call":          `os.clock() >= 0 and os.difftime(9, 4) == 5 and os.difftime(9) == 9`,
		"parts of a date":             `os.date("!%w %j %s %% %q", 0) == "4 001 0 % %q" and os.date("!%d/%m/%y %A", 86400) == "02/01/70 Friday"`,
		"format of other verbs":       `string.format("%u|%o|%X|%-5s|%5.1s|%g|%e", 7, 8, 255, "a", "bcd", 0.5, 1) == "7|10|FF|a    |    b|0.5|1.000000e+00"`,
		"format that is none":         `not pcall(string.format, "%") and not pcall(string.format, "%d") and not pcall(string.format, "%k", 1) and not pcall(string.format, "%1000d", 1) and not pcall(string.format, "%d", {})`,
		"gsub with captures":          `("ab"):gsub("(%w)(%w)", "%2%1 %0 %%") == "ba ab %" and ("ab"):gsub("a", "%1") == "ab" and not pcall(string.gsub, "ab", "(a)", "%2") and ("ab"):gsub("a", "%x") == "%xb"`,
		"gsub by what is no text":     `not pcall(string.gsub, "a", "a", function() return {} end) and ("a"):gsub("a", function() return false end) == "a"`,
		"quantities that are none":    `not pcall(require("kube").resourceAdd, "much") and not pcall(require("kube").getResourceQuantity, {})`,
		"what pods need":              `(function() local r = require("kube").accuratePodRequirements({spec = {nodeSelector = {a = "b"}, containers = {{name = "c", resources = {requests = {cpu = "1"}}}}}}) return r.resourceRequest.cpu == "1" and r.nodeClaim.nodeSelector.a == "b" end)()`,
		"what pods refer to":          `(function() local d = require("kube").getPodDependencies({spec = {serviceAccountName = "web", volumes = {{name = "c", configMap = {name = "conf"}}}}}, "shop") return #d == 2 and d[1].namespace == "shop" end)()`,
	}
	obj := map[string]any{
		"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "x", "nothing": nil},
		"spec": map[string]any{}, "num": int64(1), "list": []any{"a", "b", "c"},
	}
	p := sandbox.New(sandbox.Options{Now: clock})
	for name, expression := range cases {
		t.Run(name, func(t *testing.T) {
			if ok, err := returned(t, p, "return ("+expression+") == true", obj); ok != true || err != nil {
				t.Errorf("%s is %v: %v", expression, ok, err)
			}
		})
	}
}

// TestExport checks that results can be held by an object, and that what a script
// did not change is as it was, even where Lua has no such value: nulls, empty
// lists, and integers beyond 2^53.
func TestExport(t *testing.T) {
	obj := map[string]any{
		"big": int64(math.MaxInt64), "half": 2.5, "whole": 2.0, "null": nil, "no": []any{}, "empty": map[string]any{},
		"list": []any{"a", nil, map[string]any{"x": nil}}, "deep": map[string]any{"list": []any{int64(1), "b"}},
	}
	deep := strings.Repeat("{a=", 100) + "1" + strings.Repeat("}", 100)
	for name, tc := range map[string]struct {
		body string
		like any
		want any
		err  string
	}{
		"all of it, not looked into":      {body: `return obj`, like: obj, want: obj},
		"all of it, changed in one place": {body: `obj.deep.list[2] = "c" return obj`, like: obj, want: func() any { o := clone(obj); o["deep"].(map[string]any)["list"] = []any{int64(1), "c"}; return o }()},
		"nothing":                         {body: ``},
		"a list":                          {body: `return {1, "b", true}`, want: []any{int64(1), "b", true}},
		"names":                           {body: `return {a = 1, b = {c = 0.5}}`, want: map[string]any{"a": int64(1), "b": map[string]any{"c": 0.5}}},
		"an empty table is a list":        {body: `return {}`, want: []any{}},
		"or what it was":                  {body: `for k in pairs(obj) do obj[k] = nil end return obj`, like: map[string]any{"a": "b"}, want: map[string]any{}},
		"a number with a fraction":        {body: `return obj.whole`, like: obj, want: int64(2)},
		"no number":                       {body: `return {a = {0/0}}`, err: "script: f a.0: is NaN, which is no number in an object"},
		"a function":                      {body: `return {a = print}`, err: "script: f a: is a function"},
		"both names and numbers":          {body: `return {1, a = 2}`, err: "script: f is a table with names and numbers as keys"},
		"keys of another type":            {body: `return {[true] = 1}`, err: "script: f is a table whose keys are neither names nor numbers from 1 on"},
		"a hole":                          {body: `return {1, nil, 3}`, err: "script: f 1: is nil within a list"},
		"bytes":                           {body: `return "\255"`, err: "script: f is no text in UTF-8"},
		"bytes for a name":                {body: `return {["\255"] = 1}`, err: "script: f has a key that is no text in UTF-8"},
		"deeper than any object":          {body: `return ` + deep, err: "script: f " + strings.TrimSuffix(strings.Repeat("a.", 64), ".") + ": is nested more than 64 deep"},
		"an error":                        {body: `error("it is broken")`, err: "script:1: it is broken"},
		"an error that is a table":        {body: `error({message = "it is\nbroken"})`, err: "script: it is broken"},
		"an error that says nothing":      {body: `error({})`, err: "script: it raised a table"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := returned(t, sandbox.New(sandbox.Options{}), tc.body, tc.like)
			if text := message(err); text != tc.err {
				t.Errorf("error %q, want %q", text, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("it returns (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBudgets checks that each budget stops a script, even one that catches all
// errors, and that the next call has the whole budget again.
func TestBudgets(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		opts sandbox.Options
	}{
		"steps":                       {body: `while true do end`, opts: sandbox.Options{Steps: 10_000}},
		"steps that are caught":       {body: `while true do pcall(function() while true do end end) end`, opts: sandbox.Options{Steps: 10_000}},
		"steps of a library":          {body: `return (("a"):rep(60)):find(("a*"):rep(30) .. "b")`, opts: sandbox.Options{Steps: 100_000}},
		"steps of remainders":         {body: `while true do local x = 1.7e308 % 3e-308 end`, opts: sandbox.Options{Steps: 10_000}},
		"memory of texts":             {body: `local s = "x" while true do s = s .. s end`, opts: sandbox.Options{Memory: 1 << 20}},
		"memory of a list":            {body: `local t = {} while true do t[#t + 1] = 1 end`, opts: sandbox.Options{Memory: 1 << 20}},
		"memory of an index far away": {body: `local t = {} t[60000000] = 1`, opts: sandbox.Options{Memory: 1 << 20}},
		"memory of what is returned":  {body: `local s, t = ("x"):rep(1000), {} for i = 1, 400 do t[i] = s end return t`, opts: sandbox.Options{Memory: 1 << 20}},
		"memory in a handler":         {body: `xpcall(error, function() local t = {} while true do t[#t + 1] = {} end end)`, opts: sandbox.Options{Memory: 1 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			p := sandbox.New(tc.opts)
			var stopped *sandbox.BudgetError
			if _, err := returned(t, p, tc.body, nil); !errors.As(err, &stopped) {
				t.Errorf("error %v, want that of a budget", err)
			}
			if got, err := returned(t, p, `leaked = leaked or 1 return leaked`, nil); got != int64(1) || err != nil {
				t.Errorf("the next call: %v, %v", got, err)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func clone(x map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range x {
		if m, ok := v.(map[string]any); ok {
			v = clone(m)
		}
		out[k] = v
	}
	return out
}

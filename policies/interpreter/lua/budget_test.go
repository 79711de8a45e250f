package lua_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
)

// costly are bodies of InterpretHealth that would run forever or use all memory,
// each in another way.
var costly = map[string]string{
	"a loop without an end":                    `while true do end`,
	"a loop that jumps":                        `::again:: goto again`,
	"a loop of tiny steps":                     `for i = 0, 1, 1e-300 do end`,
	"a loop of no steps":                       `for i = 1, 0, 0 do end`,
	"a loop that catches what stops it":        `while true do pcall(function() while true do end end) end`,
	"a loop of errors":                         `while true do pcall(error, "no") end`,
	"a loop of errors of the VM":               `while true do pcall(function() return nil + 1 end) end`,
	"a loop of errors, deep down":              `local function f(n) if n > 0 then return (f(n - 1)) end while true do pcall(error, "no") end end f(60)`,
	"a loop of errors with long texts":         `local s = string.rep("x", 100000) while true do pcall(function() local t = nil; return t[s] end) end`,
	"an error handler that loops":              `xpcall(error, function() while true do end end)`,
	"errors in an error handler":               `while true do pcall(xpcall, error, function() error("no") end) end`,
	"recursion without an end":                 `local function f() return 1 + f() end while true do pcall(f) end`,
	"tail calls without an end":                `local function f() return f() end f()`,
	"calls that catch each other":              `local function f() pcall(f) pcall(f) end f()`,
	"a text repeated":                          `return string.rep("x", 1e9)`,
	"a text repeated more than there is":       `return string.rep("xxxxxxxx", 2^53)`,
	"texts repeated, one by one":               `while true do local s = ("x"):rep(1e6) end`,
	"a text that doubles":                      `local s = "x" while true do s = s .. s end`,
	"texts put together, one by one":           `local s = ("x"):rep(1e5) while true do local t = s .. "y" end`,
	"a text that is formatted":                 `local s = ("x"):rep(1e5) while true do s = string.format("%s%s", s, s) end`,
	"a text quoted":                            `local s = ("\0"):rep(1e5) while true do s = string.format("%q", s) end`,
	"a text replaced by longer ones":           `return (("x"):rep(1e5):gsub("x", ("y"):rep(1e5)))`,
	"a text replaced by what it was":           `return (("x"):rep(1e5):gsub(".*", ("%0"):rep(1e4)))`,
	"a replacement that does not return":       `return (("x"):gsub("x", function() while true do end end))`,
	"a replacement that replaces":              `local function f(s) return (s:gsub(".", f)) end return f("xx")`,
	"a pattern that tries everything":          `return (("a"):rep(60)):find(("a*"):rep(30) .. "b")`,
	"a pattern that tries everything, at last": `return (("a"):rep(3000)):match(".-.-.-.-b")`,
	"a pattern of pairs":                       `return (("("):rep(1e5)):find("%b()")`,
	"a pattern that repeats what it captured":  `return (("a"):rep(1e5)):find("(.*)%1%1b")`,
	"a long set that is passed by":             `return ("a"):find(("a?"):rep(1000) .. "[" .. ("b"):rep(1e6) .. "]")`,
	"a long text that is a pattern at last":    `local p = ("a"):rep(4e6) .. "%" for i = 1, 1000 do ("b"):find(p) end`,
	"a long set":                               `return (("a"):rep(1e5)):find("[" .. ("b"):rep(1e4) .. "]")`,
	"patterns nested deep":                     `return ("x"):find(("("):rep(30) .. ("x?"):rep(1e5))`,
	"matches without an end":                   `while true do for a in ("x"):rep(1000):gmatch("()") do end end`,
	"texts turned around":                      `local s = ("x"):rep(1e6) while true do s = s:reverse():upper():lower() end`,
	"texts cut up":                             `local s = ("x"):rep(1e5) while true do local a = {s:byte(1, 4000)} end`,
	"texts compared":                           `local s = ("x"):rep(1e6) local a, b = s .. "a", s .. "b" while true do local c = a < b end`,
	"texts that are equal":                     `local s = ("x"):rep(1e6) local a, b = s .. "a", s .. "a" while true do local c = a == b end`,
	"texts read as numbers":                    `local s = ("1"):rep(1e6) while true do pcall(function() return s + 1 end) end`,
	"texts read as numbers by tonumber":        `local s = ("1"):rep(1e6) while true do tonumber(s) end`,
	"texts read as numbers by functions":       `local s = ("1"):rep(1e6) for i = 1, 2000 do pcall(math.floor, s) end`,
	"texts that are no numbers for functions":  `local s = ("x"):rep(8e6) for i = 1, 2000 do pcall(string.format, "%d", s) end`,
	"a long name in nothing":                   `local s = ("x"):rep(8e6) local t; return t[s]`,
	"a long name given to nothing":             `local s = ("x"):rep(8e6) local t; t[s] = 1`,
	"long names":                               `local t, s = {}, ("x"):rep(1e6) while true do t[s] = t[s] end`,
	"an index far away":                        `local t = {} t[60000000] = 1`,
	"an index far away, as nothing":            `local t = {} t[60000000] = nil`,
	"many indexes not so far away":             `while true do local t = {} t[50000] = 1 end`,
	"an index far away, inserted":              `local t = {} table.insert(t, 60000000, 1)`,
	"an index far away, in a constructor":      `return {[60000000] = 1}`,
	"a list that grows":                        `local t = {} while true do t[#t + 1] = 1 end`,
	"a list that grows at its head":            `local t = {} while true do table.insert(t, 1, 1) end`,
	"a list that shrinks at its head":          `local t = {} for i = 1, 1e4 do t[i] = i end while true do table.insert(t, table.remove(t, 1)) end`,
	"a table that grows":                       `local t = {} for i = 1, 1e9 do t["k" .. i] = i end`,
	"a table that grows by tables":             `local t = {} while true do t[{}] = 1 end`,
	"a table that grows by fractions":          `local t = {} for i = 1, 1e9 do t[i + 0.5] = i end`,
	"tables":                                   `while true do local t = {} end`,
	"tables with names":                        `while true do local t = {} t.x = 1 end`,
	"tables with names at once":                `while true do local t = {a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9,j=10,k=11,l=12,m=13,n=14,o=15,p=16} end`,
	"tables with elements":                     `while true do local t = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33} end`,
	"the length of nothing much":               `local t = {} t[100000] = 1 t[100000] = nil while true do local n = #t end`,
	"the next of nothing much":                 `local t = {} for i = 1, 3000 do t["k" .. i] = 1 end for i = 1, 3000 do t["k" .. i] = nil end t.x = 1 while true do next(t) end`,
	"a list with holes gone through":           `local t = {} t[100000] = 1 while true do for k in pairs(t) do end end`,
	"functions":                                `while true do local f = function() end end`,
	"functions that hold much":                 `while true do ` + locals(100) + ` local f = function() return ` + names(100) + ` end end`,
	"functions that hold much of their caller": locals(100) + ` local function g() return ` + names(100) + ` end local function f(n) ` + locals(60) + ` local h = function() return ` + names(60) + ` end if n > 0 then return (f(n - 1)) end while true do g() end end f(15)`,
	"functions of any arguments":               `local function f(...) end while true do f() end`,
	"functions of all arguments":               `local function f(...) return select("#", ...) end local t = {} for i = 1, 2000 do t[i] = i end while true do f(unpack(t)) end`,
	"arguments in a table":                     `local t = {} for i = 1, 2000 do t[i] = i end while true do local u = {unpack(t)} end`,
	"arguments that are selected":              `local t = {} for i = 1, 2000 do t[i] = i end while true do select(1, unpack(t)) end`,
	"a sort that never agrees":                 `local t = {} for i = 1, 1e4 do t[i] = i end table.sort(t, function() return true end) while true do table.sort(t, function(a, b) return a > b end) end`,
	"a sort that does not return":              `table.sort({1, 2}, function() while true do end end)`,
	"a sort of long texts":                     `local s, t = ("x"):rep(1e5), {} for i = 1, 20 do t[i] = s .. i end while true do table.sort(t) end`,
	"a list put together":                      `local t = {} for i = 1, 1000 do t[i] = ("x"):rep(1000) end while true do local s = table.concat(t, ("y"):rep(1000)) end`,
	"a list that is not there put together":    `return table.concat({}, "x", 1, 1e15)`,
	"too many results":                         `while true do pcall(unpack, {}, 1, 1e8) end`,
	"remainders of what is far apart":          `while true do local x = 1.7e308 % 3e-308 end`,
	"powers":                                   `while true do local x = 1.0000001 ^ 1e300 end`,
	"mathematics":                              `while true do math.fmod(1.7e308, 3e-308) end`,
	"dates":                                    `local s = ("%A"):rep(1e5) while true do os.date(s) end`,
	"names of tables":                          `while true do tostring({}) end`,
	"modules":                                  `while true do require("kube") end`,
	"modules that are not there":               `while true do pcall(require, ("x"):rep(1e5)) end`,
	"quantities":                               `local kube = require("kube") while true do kube.resourceAdd("100m", "1Gi", "7.5") end`,
	"quantities that are huge":                 `local kube = require("kube") while true do pcall(kube.resourceAdd, "1e999999999", "1e-999999999") end`,
	"quantities of many digits":                `local kube = require("kube") return kube.resourceAdd(("9"):rep(1e6))`,
	"pods":                                     `local kube = require("kube") local pod = {spec = {containers = {{name = "a", resources = {requests = {cpu = "1"}}}}}} while true do kube.accuratePodRequirements(pod) end`,
	"pods that contain themselves":             `local kube = require("kube") local pod = {} pod.spec = pod return kube.accuratePodRequirements(pod)`,
	"pods that are many":                       `local kube = require("kube") local c = {} for i = 1, 3000 do c[i] = {name = "a"} end while true do kube.getPodDependencies({spec = {containers = c}}, "x") end`,
	"quantities that are no end":               `local kube, s = require("kube"), ("x"):rep(8e6) for i = 1, 1000 do pcall(kube.getResourceQuantity, s) end`,
	"quantities far apart":                     `local kube = require("kube") while true do kube.resourceAdd("1e99", "1e-99") end`,
	"matches of many captures":                 `local s = ("x"):rep(100) while true do s:match(("(x)"):rep(32)) end`,
	"error handlers that fail, deep down":      `local function f() return xpcall(f, f) end f()`,
	"the object itself":                        `while true do for k, v in pairs(obj) do end end`,
	"the names of the globals":                 `for i = 1, 1e9 do _G["x" .. i] = i end`,
	"methods of texts":                         `string.upper = function() while true do end end return ("x"):upper()`,
	"methods of the VM itself":                 `while true do pcall(string.rep) pcall(string.format, "%d", "x") pcall(table.insert) end`,
}

func locals(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("local " + local(i) + " = 1 ")
	}
	return b.String()
}

func names(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = local(i)
	}
	return strings.Join(out, ", ")
}

func local(i int) string { return "v" + string(rune('a'+i/26)) + string(rune('a'+i%26)) }

// allowedMemory is how many bytes a call may allocate in these tests.
const allowedMemory = 24 << 20

// TestCostly checks that scripts that cost too much are stopped by the budget of
// steps or of memory alone, and that the next call is not affected. It does not
// measure time, which BenchmarkCostly does: if steps were not charged by their
// cost, most of these would take minutes.
func TestCostly(t *testing.T) {
	m := lua.New(lua.Options{})
	obj := object(t, webDeployment)
	fine := health(t, m, `function InterpretHealth(obj) return obj.status.replicas == 3 and leaked == nil end`)
	if ok, err := fine(obj); !ok || err != nil {
		t.Fatal(ok, err)
	}
	before := runtime.NumGoroutine()
	for name, body := range costly {
		t.Run(name, func(t *testing.T) {
			run := health(t, m, "function InterpretHealth(obj)\nleaked = 1 "+body+" end")
			var a, b runtime.MemStats
			runtime.ReadMemStats(&a)
			_, err := run(obj)
			runtime.ReadMemStats(&b)
			var stopped *lua.BudgetError
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "healthInterpretation") {
				t.Errorf("error = %q", err)
			}
			if !errors.As(err, &stopped) && !mayFail[name] {
				t.Errorf("not stopped by a budget: %v", err)
			}
			allocated := b.TotalAlloc - a.TotalAlloc
			if allocated > allowedMemory {
				t.Errorf("took %d KiB: %v", allocated>>10, err)
			}
			t.Logf("%6d KiB %v", allocated>>10, err)
			if ok, err := fine(obj); !ok || err != nil {
				t.Errorf("the next call is affected: %v %v", ok, err)
			}
		})
	}
	// Goroutines of earlier tests take a moment to end.
	leftOver := func(context.Context) (bool, error) { return runtime.NumGoroutine() <= before, nil }
	if wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, leftOver) != nil {
		t.Errorf("%d goroutines are left over", runtime.NumGoroutine()-before)
	}
}

// mayFail are the scripts that may run into a limit of Lua itself before a budget
// stops them.
var mayFail = map[string]bool{
	"functions that hold much":                 true,
	"functions that hold much of their caller": true,
	"patterns nested deep":                     true,
	"a replacement that replaces":              true,
	"a list that is not there put together":    true,
	"quantities of many digits":                true,
	"pods that contain themselves":             true,
}

(module
  (import "env" "begin" (func $begin (param i32)))
  (import "env" "memory" (memory 1))
  (import "env" "table" (table 2 funcref))
  (import "env" "base" (global $base (mut i32)))
  (data (i32.const 8) "hello")
  (elem (i32.const 0) $nine)
  (func $nine (export "nine") (result i32) i32.const 9)
  (func $start
    (global.set $base (i32.add (global.get $base) (i32.const 1)))
    (call $begin (global.get $base)))
  (start $start))

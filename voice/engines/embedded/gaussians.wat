;; How the recogniser looks at the Gaussians of a frame, in place of two functions of its binary (recogniser-patch.ts has the bytes of this). Those look at one
;; Gaussian after another; here four are looked at at once, by the vector instructions of WebAssembly. What comes out is the same to the bit: each of the four
;; adds up its features in the same order. For that they lie in the heap by features, and not by Gaussians (gaussian-order.ts).
;;
;; A codebook has 128 Gaussians of 13 features, for each of three streams. The best of them, topn, are a list of pairs {number, score} of 32 bits, the best first.

;; ptm_mgau.c, eval_cb: which of the codebook belong among the best.
(func (param $scorer i32) (param $codebook i32) (param $stream i32) (param $observed i32)
  (local $best i32) (local $worst i32) (local $means i32) (local $variances i32) (local $norms i32)
  (local $row i32) (local $end i32) (local $at i32) (local $mean i32) (local $variance i32) (local $feature i32)
  (local $frame i32) (local $found i32) (local $number i32) (local $pair i32) (local $score f32)
  (local $scores v128) (local $away v128)

  (global.set $stack (i32.add (local.tee $frame (global.get $stack)) (i32.const 32)))
  (local.set $codebook (i32.shl (local.get $codebook) (i32.const 2)))
  (local.set $stream (i32.shl (local.get $stream) (i32.const 2)))
  (local.set $best
    (i32.load (i32.add (local.get $stream)
      (i32.load (i32.add (local.get $codebook) (i32.load (i32.load offset=44 (local.get $scorer))))))))
  (local.set $worst
    (i32.add (local.get $best) (i32.shl (i32.sub (i32.load16_s offset=36 (local.get $scorer)) (i32.const 1)) (i32.const 3))))
  (local.set $scorer (i32.load offset=12 (local.get $scorer)))
  (local.set $means
    (i32.load (i32.load (i32.add (local.get $stream)
      (i32.load (i32.add (local.get $codebook) (i32.load (local.get $scorer))))))))
  (local.set $variances
    (i32.load (i32.load (i32.add (local.get $stream)
      (i32.load (i32.add (local.get $codebook) (i32.load offset=4 (local.get $scorer))))))))
  (local.set $norms
    (i32.load (i32.add (local.get $stream)
      (i32.load (i32.add (local.get $codebook) (i32.load offset=8 (local.get $scorer)))))))
  ;; One feature of all Gaussians, in bytes.
  (local.set $row (i32.shl (i32.load offset=24 (local.get $scorer)) (i32.const 2)))
  (local.set $end
    (i32.add (local.get $observed)
      (i32.shl (i32.load (i32.add (local.get $stream) (i32.load offset=28 (local.get $scorer)))) (i32.const 2))))

  (loop $fours
    (local.set $scores (v128.load align=4 (i32.add (local.get $norms) (local.get $at))))
    (local.set $mean (i32.add (local.get $means) (local.get $at)))
    (local.set $variance (i32.add (local.get $variances) (local.get $at)))
    (local.set $feature (local.get $observed))
    (loop $features
      (local.set $away
        (f32x4.sub (v128.load32_splat (local.get $feature)) (v128.load align=4 (local.get $mean))))
      (local.set $scores
        (f32x4.sub (local.get $scores)
          (f32x4.mul (v128.load align=4 (local.get $variance)) (f32x4.mul (local.get $away) (local.get $away)))))
      (local.set $mean (i32.add (local.get $mean) (local.get $row)))
      (local.set $variance (i32.add (local.get $variance) (local.get $row)))
      (br_if $features
        (i32.lt_u (local.tee $feature (i32.add (local.get $feature) (i32.const 4))) (local.get $end))))

    (local.set $found
      (i32x4.bitmask
        (f32x4.ge (local.get $scores) (f32x4.splat (f32.convert_i32_s (i32.load offset=4 (local.get $worst)))))))
    (if (local.get $found)
      (then
        (v128.store offset=16 align=4 (local.get $frame) (local.get $scores))
        (loop $each
          (local.set $number (i32.ctz (local.get $found)))
          (local.set $found (i32.and (local.get $found) (i32.sub (local.get $found) (i32.const 1))))
          (local.set $score
            (f32.load offset=16 (i32.add (local.get $frame) (i32.shl (local.get $number) (i32.const 2)))))
          (local.set $number (i32.add (i32.shr_u (local.get $at) (i32.const 2)) (local.get $number)))
          (block $next
            ;; One of the same four may have raised the limit.
            (br_if $next
              (f32.lt (local.get $score) (f32.convert_i32_s (i32.load offset=4 (local.get $worst)))))
            (local.set $pair (local.get $best))
            (loop $pairs
              (br_if $next (i32.eq (i32.load (local.get $pair)) (local.get $number)))
              (br_if $pairs
                (i32.le_u (local.tee $pair (i32.add (local.get $pair) (i32.const 8))) (local.get $worst))))
            (call $insert (local.get $frame) (local.get $worst) (local.get $best) (local.get $number)
              (i32.trunc_sat_f32_s (local.get $score))))
          (br_if $each (local.get $found)))))
    (br_if $fours (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $row))))
  (global.set $stack (local.get $frame)))

;; ptm_mgau.c, eval_topn: what those that were the best of the last frame score in this one.
(func (param $scorer i32) (param $codebook i32) (param $stream i32) (param $observed i32)
  (local $best i32) (local $count i32) (local $index i32) (local $means i32) (local $variances i32) (local $norms i32)
  (local $row i32) (local $end i32) (local $at i32) (local $mean i32) (local $variance i32) (local $feature i32)
  (local $score f32) (local $away f32)

  (local.set $codebook (i32.shl (local.get $codebook) (i32.const 2)))
  (local.set $stream (i32.shl (local.get $stream) (i32.const 2)))
  (local.set $best
    (i32.load (i32.add (local.get $stream)
      (i32.load (i32.add (local.get $codebook) (i32.load (i32.load offset=44 (local.get $scorer))))))))
  (local.set $count (i32.load16_s offset=36 (local.get $scorer)))
  (local.set $scorer (i32.load offset=12 (local.get $scorer)))
  (local.set $means
    (i32.load (i32.load (i32.add (local.get $stream)
      (i32.load (i32.add (local.get $codebook) (i32.load (local.get $scorer))))))))
  (local.set $variances
    (i32.load (i32.load (i32.add (local.get $stream)
      (i32.load (i32.add (local.get $codebook) (i32.load offset=4 (local.get $scorer))))))))
  (local.set $norms
    (i32.load (i32.add (local.get $stream)
      (i32.load (i32.add (local.get $codebook) (i32.load offset=8 (local.get $scorer)))))))
  (local.set $row (i32.shl (i32.load offset=24 (local.get $scorer)) (i32.const 2)))
  (local.set $end
    (i32.add (local.get $observed)
      (i32.shl (i32.load (i32.add (local.get $stream) (i32.load offset=28 (local.get $scorer)))) (i32.const 2))))

  (loop $pairs
    (local.set $at
      (i32.shl (i32.load (i32.add (local.get $best) (i32.shl (local.get $index) (i32.const 3)))) (i32.const 2)))
    (local.set $score (f32.load (i32.add (local.get $norms) (local.get $at))))
    (local.set $mean (i32.add (local.get $means) (local.get $at)))
    (local.set $variance (i32.add (local.get $variances) (local.get $at)))
    (local.set $feature (local.get $observed))
    (loop $features
      (local.set $away (f32.sub (f32.load (local.get $feature)) (f32.load (local.get $mean))))
      (local.set $score
        (f32.sub (local.get $score)
          (f32.mul (f32.load (local.get $variance)) (f32.mul (local.get $away) (local.get $away)))))
      (local.set $mean (i32.add (local.get $mean) (local.get $row)))
      (local.set $variance (i32.add (local.get $variance) (local.get $row)))
      (br_if $features
        (i32.lt_u (local.tee $feature (i32.add (local.get $feature) (i32.const 4))) (local.get $end))))
    (call $settle (local.get $best) (local.get $index) (i32.trunc_sat_f32_s (local.get $score)))
    (br_if $pairs
      (i32.lt_s (local.tee $index (i32.add (local.get $index) (i32.const 1))) (local.get $count)))))
